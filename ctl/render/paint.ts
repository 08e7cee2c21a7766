// pure

type Painter = (text: string) => string

export type Paint = Readonly<
  Record<'bold' | 'dim' | 'red' | 'green' | 'yellow' | 'cyan' | 'inverse', Painter>
>

const style =
  (on: number, off: number): Painter =>
  (text) =>
    `\u001b[${on}m${text}\u001b[${off}m`

export const colours: Paint = {
  bold: style(1, 22),
  dim: style(2, 22),
  inverse: style(7, 27),
  red: style(31, 39),
  green: style(32, 39),
  yellow: style(33, 39),
  cyan: style(36, 39),
}

const same: Painter = (text) => text

export const plain: Paint = {
  bold: same,
  dim: same,
  inverse: same,
  red: same,
  green: same,
  yellow: same,
  cyan: same,
}

// Kernels, emulated machines and two busy processors make a test in thousands fail once in a while. In continuous
// integration a file with such a test is run once more, alone; what passes then is told as unsteady and counts as passed.
// Not in attacks and crashes: there one failure in many is what is looked for.
const NEVER = new Set(['escape', 'crash'])
/** More than so many files are not an accident. */
const MOST = 4

const keyOf = ({ tier, file }) => `${tier} ${file}`

/** Of the results of a run: `{tier, file}` of each file to run again, or none where that would only hide something. */
export function filesToRepeat(results) {
  const failed = results.filter(({ state }) => state === 'failed')
  const files = [
    ...new Map(failed.map((line) => [keyOf(line), { tier: line.tier, file: line.file }])).values(),
  ]
  const can = files.every(({ tier, file }) => file !== '' && !NEVER.has(tier))
  return can && files.length <= MOST ? files : []
}

/** The results that count, and which tests failed at first and passed then. */
export function withRepeated(results, repeated) {
  const again = new Set(repeated.map(keyOf))
  const passed = new Set(
    repeated.filter(({ state }) => state === 'passed').map((line) => `${keyOf(line)} ${line.name}`),
  )
  const replaced = results.filter((line) => again.has(keyOf(line)))
  return {
    results: [...results.filter((line) => !again.has(keyOf(line))), ...repeated],
    unsteady: replaced.filter(
      (line) => line.state === 'failed' && (passed.has(`${keyOf(line)} ${line.name}`) || isOfFile(line)),
    ),
  }
}

const isOfFile = ({ name }) => name === '(the file itself)'

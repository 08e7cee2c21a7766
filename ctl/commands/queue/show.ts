import { jsonText } from '../../json.ts'
import { visibleLine, visibleText } from '../../render/visible.ts'
import type { VerbRun } from '../../verb.ts'
import { findRequest } from './find.ts'

export const run: VerbRun = async (context, [id = '', request = '']) => {
  const engine = await context.engine()
  const found = await findRequest(engine, id, request)
  if (context.json) {
    await context.print(jsonText(found))
    return 0
  }
  const { bold, dim } = context.paint
  const headers = found.headers.map(
    ([name, value]) => `${dim(`${visibleLine(name)}:`)} ${visibleLine(value)}\n`,
  )
  const detail = found.detail === '' ? '' : `: ${visibleLine(found.detail)}`
  const head = `${bold(`${visibleLine(found.method)} ${visibleLine(found.url)}`)}\n${dim(`${found.state}${detail}; rule ${visibleLine(found.rule)}; sha256 ${found.sha256}`)}\n`
  const cut = found.cut ? dim('(the rest is not shown)\n') : ''
  await context.print(
    `${head}${headers.join('')}\n${visibleText(found.body)}${found.body === '' ? '' : '\n'}${cut}`,
  )
  return 0
}

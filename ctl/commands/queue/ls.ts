import { jsonText } from '../../json.ts'
import { columnsText } from '../../render/columns.ts'
import { bytesText } from '../../render/sizes.ts'
import { visibleLine } from '../../render/visible.ts'
import type { VerbRun } from '../../verb.ts'

export const run: VerbRun = async (context, [id = '']) => {
  const requests = await (await context.reader()).queue(id)
  if (context.json) {
    await context.print(jsonText(requests))
    return 0
  }
  const rows = requests.map((one) => [
    one.id,
    one.state,
    visibleLine(one.method),
    bytesText(one.bytes),
    visibleLine(`${one.url}${one.detail === '' ? '' : `  (${one.detail})`}`),
  ])
  if (rows.length === 0) await context.printError('No requests wait in this branch.\n')
  else await context.print(columnsText(['REQUEST', 'STATE', 'METHOD', 'BODY', 'URL'], rows, context.paint))
  return 0
}

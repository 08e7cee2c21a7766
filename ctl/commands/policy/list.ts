import { jsonText } from '../../json.ts'
import { columnsText } from '../../render/columns.ts'
import { visibleLine } from '../../render/visible.ts'
import { listOption, type VerbRun } from '../../verb.ts'

export const run: VerbRun = async (context, _args, options) => {
  const { listPolicies } = await import('../../../daemon/policy-tools.ts')
  const listing = await listPolicies(listOption(options, 'policy'))
  if (context.json) await context.print(jsonText(listing))
  else {
    const rows = listing.policies.map(({ name, sha256, file }) => [name, sha256.slice(0, 16), file])
    await context.print(columnsText(['POLICY', 'SHA-256', 'FILE'], rows, context.paint))
    await context.print(
      `\nversion ${listing.version.slice(0, 16)}, ${listing.vectors} vectors in the catalogue\nactions ${listing.actions.file}: ${visibleLine(listing.actions.state)}\n`,
    )
  }
  return 0
}

import { basename } from 'node:path'
import { jsonText } from '../../json.ts'
import { textOption, type VerbRun } from '../../verb.ts'

export const run: VerbRun = async (context, paths, options) => {
  const { buildPolicy } = await import('../../../daemon/policy-tools.ts')
  const file =
    textOption(options, 'output') ?? `${basename(paths[0] ?? 'policy').replace(/\.rego$/, '')}.wasm`
  const entrypoint = textOption(options, 'entrypoint') ?? 'puzzled/commit/decision'
  const sha256 = await buildPolicy(paths, entrypoint, file)
  await context.print(
    context.json ? jsonText({ file, sha256 }) : `${file}: built and tried out, SHA-256 ${sha256}\n`,
  )
  return 0
}

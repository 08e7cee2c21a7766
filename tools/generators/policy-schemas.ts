import { z } from 'zod'
import { actionPolicySchema } from '../../daemon/policy/action-policy.ts'
import { changesetFileSchema } from '../../daemon/policy/changeset-file.ts'
import { gateInputSchema } from '../../daemon/policy/gate-schema.ts'
import { profileSchema } from '../../daemon/policy/profile.ts'
import { decisionSchema } from '../../daemon/policy/verdict.ts'

const schemas: Record<string, [title: string, schema: z.ZodType]> = {
  profile: ['A profile of puzzled', profileSchema],
  'action-policy': ['An action policy of puzzled', actionPolicySchema],
  changeset: ['A changeset written by hand, for `puzzlectl policy eval`', changesetFileSchema],
  'gate-input': ["The input document of puzzled's policies", gateInputSchema],
  decision: ['What a policy of puzzled must answer', decisionSchema],
}

const files = Object.entries(schemas).map(([name, [title, schema]]) => {
  const json = z.toJSONSchema(schema, { io: 'input', unrepresentable: 'any' })
  return [`policies/schema/${name}.schema.json`, `${JSON.stringify({ title, ...json }, null, 1)}\n`]
})
console.log(JSON.stringify(Object.fromEntries(files)))

import { expect, it } from 'vitest'
import { explainPlan } from './explain.ts'
import { planOf } from './plan.fixture.ts'
import { opsOf } from './spawn-plan.ts'

const plan = planOf({ requester: { uid: 0, gid: 0, groups: [] }, baseOwner: 0 })
const steps = explainPlan(plan)
const step = (name: string) => steps.find((row) => row.name.includes(name))

it('counts as errors count', () => {
  expect(steps).toHaveLength(opsOf(plan).length)
  expect(steps.map((row) => row.step)).toEqual(steps.map((_, index) => index + 1))
})

it('shows paths, descriptors, structures and doors', () => {
  expect(step('open the base')?.args[1]).toBe('"/home/u/app"')
  expect(step('pivot to')?.args).toEqual(['"."', '"."'])
  expect(step('mount overlay on "/home/u/app"')?.args[0]).toBe('<mount /home/u/app>')
  expect(step('set core')?.args ?? step('limit core')?.args).toContain('{0x1, 0x1}')
  expect(step('try to mount')?.expect).toBe('EPERM')
  expect(steps.at(-1)).toMatchObject({ call: 'execveat', section: 'exec' })
  expect(steps.at(-1)?.args[2]).toContain('"sh", "-c", "true"')
})

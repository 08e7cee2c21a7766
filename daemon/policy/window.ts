// pure
import { z } from 'zod'

const DAYS = ['sun', 'mon', 'tue', 'wed', 'thu', 'fri', 'sat'] as const

const clock = z.string().regex(/^(?:[01]\d|2[0-3]):[0-5]\d$/, 'a time of day as HH:MM, in UTC')

/** A time of the week, in UTC. `from` after `to` crosses midnight and belongs to the day on which it begins. */
export const windowSchema = z
  .strictObject({
    days: z.array(z.enum(DAYS)).min(1, 'at least one day').optional().describe('Default: every day.'),
    from: clock,
    to: clock,
  })
  .refine(({ from, to }) => from !== to, 'two different times; leave the window out for always')

export type MaintenanceWindow = z.output<typeof windowSchema>

const minutes = (time: string): number => Number(time.slice(0, 2)) * 60 + Number(time.slice(3))

/** Whether any window is open; the end is not part of it. */
export function isOpen(windows: readonly MaintenanceWindow[], now: Date): boolean {
  const at = now.getUTCHours() * 60 + now.getUTCMinutes()
  const today = now.getUTCDay()
  const allowed = (window: MaintenanceWindow, day: number): boolean => {
    const name = DAYS[(day + 7) % 7]
    return window.days === undefined || (name !== undefined && window.days.includes(name))
  }
  return windows.some((window) => {
    const from = minutes(window.from)
    const to = minutes(window.to)
    if (from < to) return at >= from && at < to && allowed(window, today)
    return (at >= from && allowed(window, today)) || (at < to && allowed(window, today - 1))
  })
}

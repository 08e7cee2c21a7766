import { acting } from './act.ts'

export const run = acting('resume', 'was tried again')

import { acting } from './act.ts'

export const run = acting('skip', 'is skipped')

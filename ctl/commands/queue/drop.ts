import { acting } from './act.ts'

export const run = acting('drop', 'is dropped')

import { FILES } from './benign-files.ts'
import { PROJECTS } from './benign-projects.ts'
import type { Case } from './case.ts'

/** Ordinary work: must pass untouched. */
export const UNTOUCHED: readonly Case[] = [...PROJECTS, ...FILES]

import { accessSync, closeSync, constants, existsSync, openSync, statSync } from 'node:fs'
import { release } from 'node:os'
import { dirname } from 'node:path'
import { type DoctorProblem, type DoctorReport, ESSENTIAL } from './contract/doctor.ts'
import { probeFeatures } from './kernel/features.ts'
import { fstatfs } from './kernel/file-data.ts'
import { lackOfRights } from './kernel/root-rights.ts'
import { errnoOf, PuzzledError } from './lib/errors.ts'
import { stateDirectory } from './lib/read-config.ts'
import { unsuitableState } from './lib/state-place.ts'

/**
 * What this machine can do and whether the store can be where it should be. Works without a daemon and without a store,
 * and leaves nothing behind: the doctor is for the cases in which the engine does not open.
 */
export async function diagnose(options: { stateDir: string | null }): Promise<DoctorReport> {
  const uid = process.geteuid?.() ?? 0
  const path = await stateDirectory(options.stateDir)
  const state = assessState(path)
  const lack = uid === 0 ? lackOfRights() : null
  const problem = lack === null ? null : problemOf(lack, path)
  const features = await probeFeatures({
    stateDirectory: path,
    overrides: process.env.PUZZLED_TEST_FEATURES,
  })
  return {
    version: 1,
    host: { kernel: release(), architecture: process.arch, node: process.version, uid, problem },
    state,
    features: Object.values(features),
    ready:
      problem === null &&
      state.problem === null &&
      ESSENTIAL.every((name) => features[name].state !== 'missing'),
  }
}

/** Looks only: a directory that does not exist is not made, its nearest parent is judged instead. */
export function assessState(path: string): DoctorReport['state'] {
  let filesystem: string | null = null
  let exists = false
  try {
    const place = nearestExisting(path)
    exists = place === path
    filesystem = filesystemOf(place)
    accessSync(place, constants.R_OK | constants.W_OK | constants.X_OK)
    const refused = unsuitableState(path, filesystem, process.env.PUZZLED_ALLOW_VOLATILE_STATE === '1')
    if (refused !== undefined) throw refused
    return { path, exists, filesystem, problem: null }
  } catch (error) {
    return { path, exists, filesystem, problem: problemOf(error, path) }
  }
}

function nearestExisting(path: string): string {
  let place = path
  while (!existsSync(place) && place !== dirname(place)) {
    // existsSync is also false for what may not be looked at; that must not be mistaken for absence.
    const error = statErrno(place)
    if (error !== 'ENOENT') throw Object.assign(new Error(`${place}: ${error}`), { code: error })
    place = dirname(place)
  }
  if (!statSync(place).isDirectory()) throw Object.assign(new Error(`${place}: ENOTDIR`), { code: 'ENOTDIR' })
  return place
}

function statErrno(path: string): string {
  try {
    statSync(path)
    return 'ENOENT'
  } catch (error) {
    return errnoOf(error) ?? 'EIO'
  }
}

function filesystemOf(place: string): string {
  const directory = openSync(place, constants.O_RDONLY | constants.O_DIRECTORY)
  try {
    return fstatfs(directory).type
  } finally {
    closeSync(directory)
  }
}

function problemOf(error: unknown, path: string): DoctorProblem {
  if (error instanceof PuzzledError)
    return { code: error.code, message: error.message, hint: error.hint ?? null }
  const errno = errnoOf(error)
  const notRoot = (process.geteuid?.() ?? 0) !== 0 && (errno === 'EACCES' || errno === 'EPERM')
  return {
    code: 'state-unreadable',
    message: `The state directory "${path}" cannot be used: ${errno ?? String(error)}`,
    hint: notRoot
      ? 'Run it as root, or name another one with --state-dir.'
      : 'Name another one with --state-dir.',
  }
}

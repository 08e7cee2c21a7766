import { readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Stage } from './stage.ts'

/** What must have happened before somebody reads that part of a document. Each leaves a branch that the block names. */
export type Situation = (stage: Stage, project: string) => Promise<void>

const LONG_WORK = 'echo half > half.txt; exec sleep 600'
const JOURNAL = '/var/lib/puzzled/journal'

/** The daemon as if its disk failed in these places; without any it is well again at its next start. */
function restartWith(stage: Stage, failpoints: string): void {
  stage.asRoot('systemctl', 'stop', 'puzzled')
  stage.write(stage.path('service/failpoints'), failpoints)
  stage.asRoot('systemctl', 'start', 'puzzled')
  stage.write(stage.path('service/failpoints'), '')
}

/** A held branch of this name that changes one file. */
async function held(stage: Stage, project: string, name: string): Promise<void> {
  const done = await stage.type(
    `puzzlectl run --name ${name} --then hold -- sh -c 'echo ${name} > note.txt'`,
    project,
  )
  if (done.status !== 0) throw new Error(done.text)
}

async function approved(stage: Stage, project: string, name: string, status: number): Promise<string> {
  const done = await stage.type(`puzzlectl approve ${name}`, project, 'bob')
  if (done.status !== status) throw new Error(`approve ended with ${done.status}: ${done.text}`)
  return done.text
}

function damageNewestJournal(stage: Stage): void {
  stage.asRoot('systemctl', 'stop', 'puzzled')
  const logs = readdirSync(JOURNAL).filter((name) => name.endsWith('.log'))
  const newest = logs
    .map((name) => join(JOURNAL, name))
    .sort((a, b) => statSync(a).mtimeMs - statSync(b).mtimeMs)
  const file = newest.at(-1) ?? ''
  const bytes = readFileSync(file)
  bytes[40] = (bytes[40] ?? 0) ^ 1
  writeFileSync(file, bytes)
  stage.asRoot('systemctl', 'start', 'puzzled')
}

export const SITUATIONS: Readonly<Record<string, Situation>> = {
  'held-branch': (stage, project) => held(stage, project, 'fix'),

  'stuck-commit': async (stage, project) => {
    restartWith(stage, 'commit.applied=EIO,undo.synced=EIO')
    await held(stage, project, 'stuck')
    await approved(stage, project, 'stuck', 123)
  },

  'full-disk': async (stage, project) => {
    restartWith(stage, 'commit.staged-one=ENOSPC')
    await held(stage, project, 'large')
  },

  'space-again': async (stage) => restartWith(stage, ''),

  'lost-daemon': async (stage, project) => {
    await stage.type(`puzzlectl run --detach --name work -- sh -c '${LONG_WORK}'`, project)
    const written = async (): Promise<boolean> =>
      (await stage.type('puzzlectl diff work --name-only', project)).text.includes('half.txt')
    for (let attempt = 0; !(await written()); attempt++)
      if (attempt > 100) throw new Error('The agent never wrote its file')
    stage.asRoot('systemctl', 'kill', 'puzzled')
  },

  /** A bit of a finished commit's journal is turned while nobody looks. */
  'damaged-journal': async (stage, project) => {
    await held(stage, project, 'landed')
    await approved(stage, project, 'landed', 0)
    damageNewestJournal(stage)
  },

  'damaged-intent': async (stage, project) => {
    restartWith(stage, 'commit.applied=EIO,undo.synced=EIO')
    await held(stage, project, 'between')
    await approved(stage, project, 'between', 123)
    damageNewestJournal(stage)
    const again = await stage.type('puzzlectl commit between', project)
    if (again.status !== 123) throw new Error(`commit ended with ${again.status}: ${again.text}`)
  },

  'new-secret': async (stage, project) => {
    stage.write(join(project, 'new.key'), 'sk-another\n')
    stage.write('/etc/puzzled/model.key', 'sk-the-old-one\n')
  },
}

import { mkdirSync, mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect } from 'vitest'
import { AuditLog } from '../../daemon/audit/log.ts'
import { loadPublicKey } from '../../daemon/audit/signer.ts'
import { verifyLog } from '../../daemon/audit/verify.ts'
import { openEngine } from '../../daemon/embedded.ts'
import { type Config, defaultConfig } from '../../daemon/lib/config.ts'
import { UndoStack } from '../../daemon/lib/undo.ts'
import { needs, root } from '../tier/needs.ts'

const check = needs(root)
const ROOT = { uid: 0, gid: 0, groups: [0], name: 'root' }

const segments = (directory: string): string[] =>
  readdirSync(directory)
    .filter((name) => name.endsWith('.jsonl'))
    .sort()

/** A store with a log of many small segments; answers how many were archived, and where. */
async function collectWith(audit: Config['audit'], work: (archived: number, log: string) => Promise<void>) {
  const undo = new UndoStack()
  try {
    const state = mkdtempSync(join(tmpdir(), 'audit-retention-'))
    const directory = join(state, 'audit')
    mkdirSync(directory, { mode: 0o700 })
    const log = await AuditLog.open(directory, { now: () => new Date(0), segmentBytes: 500 })
    for (let index = 0; index < 30; index++) await log.append('test', 'branch', { index })
    await log.close()
    const config = { ...defaultConfig(), state_dir: state, audit }
    const first = await openEngine(config, ROOT, true)
    undo.push('close the engine', first.release)
    const { archived } = await first.engine.collect()
    await undo.unwind()
    undo.push('remove the store', () => rmSync(state, { recursive: true }))
    // The next start continues the chain from what stayed.
    const next = await openEngine(config, ROOT, true)
    undo.push('close the engine', next.release)
    await work(archived, directory)
  } finally {
    await undo.unwind()
  }
}

describe('retention of the audit log', () => {
  check('moves nothing that nobody asked for', () =>
    collectWith({ age: null, bytes: null }, async (archived, log) => {
      expect(archived).toBe(0)
      expect(segments(log).length).toBeGreaterThan(5)
      expect(readdirSync(log)).not.toContain('archive')
    }),
  )

  check.each([
    ['size', { age: null, bytes: 0 }],
    ['age', { age: 0, bytes: null }],
  ])('moves old segments by %s to the archive, and what stays still verifies', (_what, audit) =>
    collectWith(audit, async (archived, log) => {
      const kept = segments(log)
      expect(kept.length).toBe(2)
      const moved = segments(join(log, 'archive'))
      expect(moved.length).toBe(archived)
      expect([...moved, ...kept]).toEqual([...moved, ...kept].sort())
      expect((await verifyLog(log, await loadPublicKey(log))).bad).toBeNull()
    }),
  )
})

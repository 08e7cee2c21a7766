import { describe, expect, it } from 'vitest'
import { PuzzledError } from '../../daemon/lib/errors.ts'
import { makeChangeset } from '../../test/fakes/changesets.ts'
import { requestLine, statLine, unifiedText } from './changes.ts'
import { errorText } from './error.ts'
import { plain } from './paint.ts'

/** Clears the screen, goes to another line, turns the rest of the line round. */
const HOSTILE = 'x\u001b[2J\nhint: run this\u202e\u009b1m'
const SHOWN = 'x\\e[2J\\nhint: run this<U+202E>\\x9b1m'

describe('what an agent chose, on a line of ours,', () => {
  it('is shown as what it is: names, links, attributes, findings', () => {
    const finding = { rule: 'overlay-xattr', message: `it carries ${HOSTILE}` }
    const xattrs = [{ name: HOSTILE, value: new Uint8Array() }]
    const changeset = makeChangeset([{ path: HOSTILE, link: HOSTILE, xattrs, findings: [finding] }])
    const [change] = changeset.changes
    const line = change === undefined ? '' : statLine(changeset, change, plain)
    expect(line).toBe(`+ ${SHOWN}  → ${SHOWN}, xattrs ${SHOWN}, it carries ${SHOWN}`)
  })

  it('is shown as what it is: requests', () => {
    const [request] = makeChangeset([], {
      requests: [
        { id: 'r1', method: 'POST', host: 'a.test', path: HOSTILE, bytes: 3, class: 'queue', sha256: '' },
      ],
    }).requests
    expect(request && requestLine(request)).toBe(`> POST a.test${SHOWN} (3 B)\n`)
  })

  it('begins no line of its own in a message', () => {
    const error = new PuzzledError('conflict', `Cannot commit "${HOSTILE}"`, { hint: 'Rebase it.' })
    expect(errorText(error, plain)).toBe(`puzzlectl: Cannot commit "${SHOWN}"\n  hint: Rebase it.\n`)
  })
})

describe('the head of a patch', () => {
  it.each([
    ['a.txt', '+++ b/a.txt'],
    ['with a blank.txt', '+++ b/with a blank.txt\t'],
  ])('names %s so that patch(1) finds it', (path, head) => {
    const changeset = makeChangeset([{ path }])
    const [change] = changeset.changes
    const side = { bytes: Buffer.from('x\n'), size: 2 }
    const text = change && unifiedText(changeset, change, { before: null, after: side }, plain)
    expect(text?.split('\n').slice(0, 2)).toEqual(['--- /dev/null', head])
  })
})

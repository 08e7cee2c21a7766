import { readdirSync, readFileSync } from 'node:fs'

const FOLDER = 'docs/decisions'

/** The first heading of a page says what was decided. */
const rows = readdirSync(FOLDER)
  .filter((name) => name.endsWith('.md') && name !== 'README.md')
  .sort()
  .map((name) => {
    const title = /^# (.+)$/m.exec(readFileSync(`${FOLDER}/${name}`, 'utf8'))?.[1]
    if (title === undefined) throw new Error(`${FOLDER}/${name} has no title`)
    return `* [${title}](${name})`
  })

const index = `# Decisions

One page per decision that somebody could want to turn around: what was chosen, what was not, what it costs. This list is generated
from the titles of the pages.

${rows.join('\n')}
`
console.log(JSON.stringify({ [`${FOLDER}/README.md`]: index }))

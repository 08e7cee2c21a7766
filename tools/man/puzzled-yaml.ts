import { configSchema } from '../../daemon/lib/config-schema.ts'
import { fieldsOf } from '../schema-fields.ts'
import { example, heading, item, page, prose, seeAlso } from './roff.ts'

const DESCRIPTION = `Configuration of \`puzzled\`(8), in YAML 1.2. Everything has a default, and without the file all defaults hold. An unknown key, a key that is there
twice or a value of the wrong kind is an error that names the line, and the daemon does not start. A reload with such a file changes nothing.

Durations are numbers with a unit: \`30s\`, \`15m\`, \`12h\`, \`7d\`. Sizes are powers of 1024: \`500M\`, \`10G\`.`

export const CONFIG_EXAMPLE = `# Reviewers of this company are in a group of their own, and reverts are possible for a quarter of a year.
groups:
  reviewers: release-managers
retention:
  commits: 1000
  age: 90d
  bytes: 100G`

const defaultText = (value: unknown): string =>
  value === undefined || (typeof value === 'object' && value !== null) ? '' : ` Default: \`${value}\`.`

export const puzzledYamlPage = (): string =>
  page('puzzled.yaml', 5, 'File Formats', [
    `${heading('Name')}puzzled.yaml \\- configuration of the daemon that runs agents in branches\n`,
    `${heading('Synopsis')}.I /etc/puzzled/puzzled.yaml\n`,
    `${heading('Description')}${prose(DESCRIPTION)}`,
    heading('Keys'),
    ...fieldsOf(configSchema).map(({ name, about, default: value }) =>
      item(`\`${name}\``, `${about}${defaultText(value)}`),
    ),
    `${heading('Checking')}${example('puzzled --check-config')}`,
    `${heading('Example')}${example(CONFIG_EXAMPLE)}`,
    seeAlso(['puzzled(8)', 'puzzlectl(1)']),
  ])

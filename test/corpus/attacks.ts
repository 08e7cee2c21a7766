import { DECEPTION, SECRETS } from './attacks-content.ts'
import { GIT } from './attacks-git.ts'
import { NODES, SIZE } from './attacks-nodes.ts'
import { PACKAGES } from './attacks-packages.ts'
import type { Case } from './case.ts'

/** What must not pass: a person looks, or it is refused. */
export const ATTACKS: readonly Case[] = [...SECRETS, ...DECEPTION, ...GIT, ...NODES, ...SIZE, ...PACKAGES]

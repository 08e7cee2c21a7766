// pure
import { MOUNT_ATTR_NODEV, MOUNT_ATTR_NOSUID } from '../kernel/uapi/index.ts'

/** Names under which the planners of the root keep descriptors for each other. */
export const ROOT = 'root'
export const STAGING = 'staging'
export const MASK_DIRECTORY = 'mask directory'
export const sourceSlot = (path: string): string => `source of ${path}`
export const targetSlot = (path: string): string => `target ${path}`
export const mountSlot = (path: string): string => `mount ${path}`

export const SHIELDED = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV

export const relative = (path: string): string => path.slice(1)
export const quoted = (path: string): string => JSON.stringify(path)

import {
  type BusInterface,
  type BusMethod,
  interfaceXml,
  MANAGER,
  MANAGER_PATH,
  signatureOf,
} from '../contract/bus.ts'
import type { Variant } from '../contract/bus-values.ts'
import { busNameOf } from '../contract/errors.ts'
import type { BusConnection, BusMessage } from '../lib/bus-connection.ts'
import { PuzzledError } from '../lib/errors.ts'
import type { FloodGate } from './flood.ts'

/** What the dispatcher serves at one path. */
export interface BusObject {
  readonly face: BusInterface
  /** `in` and `out` are as the interface declares them. */
  call(method: string, body: readonly unknown[], caller: Caller): Promise<readonly unknown[]>
  /** Every property of the interface. */
  properties(): Promise<Readonly<Record<string, Variant>>>
}

export interface Caller {
  /** Unique bus name. */
  name: string
  /** Said with the call: a person may be asked for a password now. */
  interactive?: boolean
  /** What was called, for what is said about the call while it lasts. */
  call?: { readonly serial: number; readonly path: string; readonly face: string }
}

export interface Guard {
  /** Throws `access-denied` for a process inside a branch: it gets no answer to anything, not even to a ping. */
  outside(caller: Caller, what: string): Promise<void>
  /** Whether this caller may know of the object. */
  sees(caller: Caller, object: BusObject): Promise<boolean>
  /** Throws `access-denied` unless this call may go on. */
  admit(caller: Caller, object: BusObject, method: string, declared: BusMethod): Promise<void>
}

export interface ObjectTree {
  /** The object at this path, or undefined. */
  find(path: string): Promise<BusObject | undefined>
  /** Paths of all branch objects. */
  paths(): Promise<readonly string[]>
}

const PROPERTIES = 'org.freedesktop.DBus.Properties'
const INTROSPECTABLE = 'org.freedesktop.DBus.Introspectable'
const OBJECT_MANAGER = 'org.freedesktop.DBus.ObjectManager'
const PEER = 'org.freedesktop.DBus.Peer'

const STANDARD_XML = `  <interface name="${PROPERTIES}">
    <method name="Get">
      <arg name="interface" type="s" direction="in"/>
      <arg name="property" type="s" direction="in"/>
      <arg name="value" type="v" direction="out"/>
    </method>
    <method name="GetAll">
      <arg name="interface" type="s" direction="in"/>
      <arg name="properties" type="a{sv}" direction="out"/>
    </method>
    <method name="Set">
      <arg name="interface" type="s" direction="in"/>
      <arg name="property" type="s" direction="in"/>
      <arg name="value" type="v" direction="in"/>
    </method>
    <signal name="PropertiesChanged">
      <arg name="interface" type="s"/>
      <arg name="changed" type="a{sv}"/>
      <arg name="invalidated" type="as"/>
    </signal>
  </interface>
  <interface name="${INTROSPECTABLE}">
    <method name="Introspect">
      <arg name="xml" type="s" direction="out"/>
    </method>
  </interface>
  <interface name="${PEER}">
    <method name="Ping"/>
    <method name="GetMachineId">
      <arg name="machine" type="s" direction="out"/>
    </method>
  </interface>
`

const MANAGER_XML = `  <interface name="${OBJECT_MANAGER}">
    <method name="GetManagedObjects">
      <arg name="objects" type="a{oa{sa{sv}}}" direction="out"/>
    </method>
    <signal name="InterfacesAdded">
      <arg name="object" type="o"/>
      <arg name="interfaces" type="a{sa{sv}}"/>
    </signal>
    <signal name="InterfacesRemoved">
      <arg name="object" type="o"/>
      <arg name="interfaces" type="as"/>
    </signal>
  </interface>
`

export const DOCTYPE =
  '<!DOCTYPE node PUBLIC "-//freedesktop//DTD D-BUS Object Introspection 1.0//EN"\n "http://www.freedesktop.org/standards/dbus/1.0/introspect.dtd">\n'

/** The document of one interface's objects, without child nodes. */
export const objectXml = (face: BusInterface): string =>
  `${STANDARD_XML}${face === MANAGER ? MANAGER_XML : ''}${interfaceXml(face)}`

type Answer = { signature: string; body: readonly unknown[] }

/** Answers method calls: the standard interfaces itself, everything else through the objects and behind the guard. */
export class BusServer {
  readonly #connection: BusConnection
  readonly #tree: ObjectTree
  readonly #guard: Guard
  readonly #machineId: () => Promise<string>
  readonly #flood: FloodGate
  readonly #report: (error: unknown) => void

  /** `report` hears of what cannot be told to a caller, and of our own defects. */
  constructor(
    connection: BusConnection,
    tree: ObjectTree,
    guard: Guard,
    machineId: () => Promise<string>,
    flood: FloodGate,
    report: (error: unknown) => void,
  ) {
    this.#connection = connection
    this.#tree = tree
    this.#guard = guard
    this.#machineId = machineId
    this.#flood = flood
    this.#report = report
  }

  start(): void {
    this.#connection.onCall((message) => {
      this.#serve(message).catch((error: unknown) => this.#report(error))
    })
  }

  /** Every call is answered: also one whose answer cannot be sent. */
  async #serve(message: BusMessage): Promise<void> {
    try {
      const { signature, body } = await this.#flood.admit(message.sender ?? '', message.bytes ?? 0, () =>
        this.#answer(message),
      )
      this.#connection.reply(message, signature, body)
    } catch (error) {
      this.#refuse(message, error)
    }
  }

  propertiesChanged(
    to: string,
    path: string,
    face: BusInterface,
    changed: Readonly<Record<string, Variant>>,
  ): void {
    const body = [face.name, Object.entries(changed), []]
    this.#connection.signal({
      ...{ to, path, face: PROPERTIES, member: 'PropertiesChanged' },
      ...{ signature: 'sa{sv}as', body },
    })
  }

  interfacesAdded(
    to: string,
    path: string,
    face: BusInterface,
    properties: Readonly<Record<string, Variant>>,
  ): void {
    const body = [path, [[face.name, Object.entries(properties)]]]
    this.#connection.signal({
      ...{ to, path: MANAGER_PATH, face: OBJECT_MANAGER, member: 'InterfacesAdded' },
      ...{ signature: 'oa{sa{sv}}', body },
    })
  }

  interfacesRemoved(to: string, path: string, face: BusInterface): void {
    this.#connection.signal({
      ...{ to, path: MANAGER_PATH, face: OBJECT_MANAGER, member: 'InterfacesRemoved' },
      ...{ signature: 'oas', body: [path, [face.name]] },
    })
  }

  async #answer(message: BusMessage): Promise<Answer> {
    const { path = '/', member = '' } = message
    const face = message.interface ?? ''
    const caller = callerOf(message)
    const standard = Object.hasOwn(STANDARD, face) ? STANDARD[face] : undefined
    if (standard !== undefined) {
      await this.#guard.outside(caller, `${face}.${member}`)
      checkSignature(message, Object.hasOwn(standard, member) ? standard[member] : undefined)
    }
    switch (face) {
      case PEER:
        return member === 'GetMachineId'
          ? { signature: 's', body: [await this.#machineId()] }
          : { signature: '', body: [] }
      case INTROSPECTABLE:
        return { signature: 's', body: [await this.#introspect(path, caller)] }
      case PROPERTIES:
        return this.#property(await this.#object(path, caller), member, message)
      case OBJECT_MANAGER:
        return this.#managed(path, caller)
      default:
        await this.#guard.outside(caller, `${face}.${member}`)
        return this.#call(await this.#object(path, caller), member, message)
    }
  }

  /** What somebody may not know of is not there. */
  async #object(path: string, caller: Caller): Promise<BusObject> {
    const object = await this.#tree.find(path)
    if (object === undefined || !(await this.#guard.sees(caller, object)))
      throw new NoSuch('UnknownObject', `There is no object ${path}`)
    return object
  }

  /** What a body holds is looked at when everything else has been found in order, and the caller may call. */
  async #call(object: BusObject, member: string, message: BusMessage): Promise<Answer> {
    const face = message.interface
    const declared = Object.hasOwn(object.face.methods, member) ? object.face.methods[member] : undefined
    if ((face !== undefined && face !== object.face.name) || declared === undefined)
      throw new NoSuch(
        'UnknownMethod',
        `There is no method ${face ?? object.face.name}.${member} at ${message.path}`,
      )
    checkSignature(message, signatureOf(declared.in))
    const { serial, path } = message
    const call = { serial, path: path ?? '', face: object.face.name }
    const caller = { ...callerOf(message), call }
    await this.#guard.admit(caller, object, member, declared)
    return { signature: signatureOf(declared.out), body: await object.call(member, bodyOf(message), caller) }
  }

  async #property(object: BusObject, member: string, message: BusMessage): Promise<Answer> {
    const [face, name] = bodyOf(message)
    if (face !== object.face.name && face !== '')
      throw new NoSuch('UnknownInterface', `There is no interface ${String(face)} at ${message.path}`)
    const properties = await object.properties()
    if (member === 'GetAll') return { signature: 'a{sv}', body: [Object.entries(properties)] }
    const value = Object.hasOwn(properties, String(name)) ? properties[String(name)] : undefined
    if (value === undefined) throw new NoSuch('UnknownProperty', `There is no property ${String(name)}`)
    if (member === 'Set') throw new NoSuch('PropertyReadOnly', `Property ${String(name)} is read-only`)
    return { signature: 'v', body: [value] }
  }

  async #managed(path: string, caller: Caller): Promise<Answer> {
    if (path !== MANAGER_PATH) throw new NoSuch('UnknownMethod', `${path} manages no objects`)
    const objects: [string, [string, [string, Variant][]][]][] = []
    for (const child of await this.#tree.paths()) {
      const object = await this.#tree.find(child)
      if (object === undefined || !(await this.#guard.sees(caller, object))) continue
      objects.push([child, [[object.face.name, Object.entries(await object.properties())]]])
    }
    return { signature: 'a{oa{sa{sv}}}', body: [objects] }
  }

  async #introspect(path: string, caller: Caller): Promise<string> {
    const children = await this.#childrenOf(path, caller)
    const object = await this.#tree.find(path)
    const shown = object !== undefined && (await this.#guard.sees(caller, object)) ? object : undefined
    if (shown === undefined && children.length === 0)
      throw new NoSuch('UnknownObject', `There is no object ${path}`)
    const inner = shown === undefined ? '' : objectXml(shown.face)
    return `${DOCTYPE}<node>\n${inner}${children.map((name) => `  <node name="${name}"/>\n`).join('')}</node>\n`
  }

  async #childrenOf(path: string, caller: Caller): Promise<readonly string[]> {
    const prefix = path === '/' ? '/' : `${path}/`
    const below = new Set<string>()
    for (const one of [MANAGER_PATH, ...(await this.#tree.paths())]) {
      if (!one.startsWith(prefix)) continue
      const object = await this.#tree.find(one)
      if (object !== undefined && (await this.#guard.sees(caller, object)))
        below.add(one.slice(prefix.length).split('/')[0] ?? '')
    }
    return [...below].sort()
  }

  /** Told to the caller alone, on the object that it called. */
  progress({ name, call }: Caller, done: number, total: number | null): void {
    if (call === undefined) return
    const { path, face, serial } = call
    this.#connection.signal({
      ...{ to: name, path, face, member: 'Progress' },
      ...{ signature: 'utt', body: [serial, done, total ?? 0] },
    })
  }

  /** Our errors by their documented names; a defect is logged with the message and never sent with its stack. */
  #refuse(message: BusMessage, error: unknown): void {
    if (error instanceof NoSuch)
      this.#connection.replyError(message, `org.freedesktop.DBus.Error.${error.kind}`, error.message)
    else if (error instanceof PuzzledError)
      this.#connection.replyError(
        message,
        busNameOf(error.code),
        error.hint === undefined ? error.message : `${error.message}\n${error.hint}`,
      )
    else {
      this.#report(error)
      this.#connection.replyError(
        message,
        busNameOf('internal'),
        error instanceof Error ? error.message : String(error),
      )
    }
  }
}

function bodyOf(message: BusMessage): readonly unknown[] {
  try {
    return message.body ?? []
  } catch {
    throw new NoSuch('InvalidArgs', `The arguments of ${message.member ?? 'the call'} cannot be read`)
  }
}

/** The methods of the standard interfaces, by the signature of their arguments. */
const STANDARD: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  [PEER]: { Ping: '', GetMachineId: '' },
  [INTROSPECTABLE]: { Introspect: '' },
  [PROPERTIES]: { Get: 'ss', GetAll: 's', Set: 'ssv' },
  [OBJECT_MANAGER]: { GetManagedObjects: '' },
}

/** `expected` is undefined for a method that does not exist. The wire library checks neither. */
function checkSignature({ member = '', path, signature = '' }: BusMessage, expected?: string): void {
  if (expected === undefined)
    throw new NoSuch('UnknownMethod', `There is no method ${member} at ${path ?? '/'}`)
  if (signature !== expected)
    throw new NoSuch('InvalidArgs', `${member} takes "${expected}", not "${signature}"`)
}

const INTERACTIVE = 4

const callerOf = ({ sender = '', flags = 0 }: BusMessage): Caller => ({
  name: sender,
  interactive: (flags & INTERACTIVE) !== 0,
})

class NoSuch extends Error {
  readonly kind: string

  constructor(kind: string, message: string) {
    super(message)
    this.kind = kind
  }
}

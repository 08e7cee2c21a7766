/** The parts of the library that turn messages into bytes and back; it ships no types for them. */
declare module 'dbus-native/lib/message.js' {
  /** Throws when a value does not fit the signature. */
  export function marshall(message: object): Buffer
  /** One whole message. Throws when it is not of the specified form. */
  export function unmarshall(bytes: Buffer, options: object): Record<string, unknown>
}

/** Put in by the build; only code that was never built has none. */
export const VERSION = process.env.PUZZLED_BUILD_VERSION ?? 'unbuilt'

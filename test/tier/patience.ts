/** An emulated machine takes several times as long: what a test may take, and what it waits for. */
export const patience = process.env.PUZZLED_VM === undefined ? 1 : 8

/* Bytes for the image and bytes from it, whatever its console is. */
export const line = { input: Buffer.alloc(0), output: [] };

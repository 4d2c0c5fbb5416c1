/**
 * How long tests wait for what is sure to come: many times what a busy machine needs, and less than
 * a test may take.
 */

/** Options of `vi.waitFor` and `expect.poll`, whose own patience is a second. */
export const patience = { timeout: 15_000, interval: 20 };

/** For installers: each takes seconds of a processor, which other builds share. */
export const installPatience = { timeout: 45_000, interval: 100 };

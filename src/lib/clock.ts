/** Wall clock, epoch milliseconds. Edges take one as an option, so that tests choose the time. */
export type Clock = () => number;

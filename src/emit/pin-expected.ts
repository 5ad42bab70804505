/** Whether the config expects pins of a cluster (`expectPin`). `undefined`: no cluster was chosen. */
export type IsPinExpected = (cluster: string | undefined) => boolean;

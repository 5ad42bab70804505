/**
 * Envoy's response flags by their short names, as `%RESPONSE_FLAGS%` prints them.
 * Source: `envoy.data.accesslog.v3.ResponseFlags`, field by field (Envoy 1.40).
 */
export const responseFlags = [
  'LH',
  'UH',
  'UT',
  'LR',
  'UR',
  'UF',
  'UC',
  'UO',
  'NR',
  'DI',
  'FI',
  'RL',
  'UAEX',
  'RLSE',
  'DC',
  'URX',
  'SI',
  'IH',
  'DPE',
  'UMSDR',
  'RFCF',
  'NFCF',
  'DT',
  'UPE',
  'NC',
  'OM',
  'DF',
  'DO',
  'DR',
  'UDO',
] as const;
export type ResponseFlag = (typeof responseFlags)[number];

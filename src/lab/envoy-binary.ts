/** Where the set-up found Envoy; throws a clear error where it did not. */
export { findEnvoy } from '../../setup/envoy.mjs';

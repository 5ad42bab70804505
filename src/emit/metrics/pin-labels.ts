import { hasLeft, type Pin } from '../../model/verdict.ts';
import { attribute as a, type Labels } from '../attributes.ts';

/** `clusterExpects`: the config expects pins of the cluster. Only what left can be expected to have left. */
export function isExpected(pin: Pin, clusterExpects: boolean): boolean {
  return clusterExpects && hasLeft(pin);
}

/** Labels of a pin in a cluster. */
export function pinLabels(pin: Pin, clusterExpects: boolean): Labels {
  return isExpected(pin, clusterExpects) ? { [a.pin]: pin, [a.expected]: 'true' } : { [a.pin]: pin };
}

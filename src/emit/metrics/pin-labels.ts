import { hasLeft, type Pin } from '../../model/verdict.ts';
import { attribute as a, type Labels } from '../attributes.ts';

/** `clusterExpects`: the config expects pins of the cluster. Only what left can be expected to have left. */
export function pinLabels(pin: Pin, clusterExpects: boolean): Labels {
  return clusterExpects && hasLeft(pin) ? { [a.pin]: pin, [a.expected]: 'true' } : { [a.pin]: pin };
}

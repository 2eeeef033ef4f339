package skyband.spark;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;

/**
 * What a sieve has to know, as Python writes it: longs, the lowest byte first.
 *
 * @param id tells apart the sieves of one query
 * @param k how many rows of a group and pane may be shown
 * @param every ticks from one window to the next
 * @param whole how many slides a window has, rounded down; negative if windows never end
 * @param rest how many ticks it has beyond these
 * @param ascending is the smallest score the best?
 * @param exact can scores be told apart as they are given? If not, a smaller one is smaller, but equal ones may differ
 * @param capacity the most rows, groups and panes, and panes to hold
 */
record Plan(
    long id, int k, long every, long whole, long rest, boolean ascending, boolean exact, int capacity) {

  static Plan read(byte[] bytes) {
    ByteBuffer longs = ByteBuffer.wrap(bytes).order(ByteOrder.LITTLE_ENDIAN);
    return new Plan(
        longs.getLong(),
        Math.toIntExact(longs.getLong()),
        longs.getLong(),
        longs.getLong(),
        longs.getLong(),
        longs.getLong() != 0,
        longs.getLong() != 0,
        Math.toIntExact(longs.getLong()));
  }
}

package skyband.spark;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.Arrays;

/** How many rows with a score each pane has: an open-addressing table that is at most half full. */
final class PaneCounts {
  private static final int FIRST_PANES = 1 << 8;

  private final int capacity;
  private long[] panes;
  private long[] counts; // -1 where free; 0: found, but no row of it was ranked
  private int used;

  PaneCounts(int capacity) {
    this.capacity = capacity;
    clear();
  }

  private void clear() {
    panes = new long[2 * FIRST_PANES];
    counts = new long[2 * FIRST_PANES];
    Arrays.fill(counts, -1);
    used = 0;
  }

  /** Where the pane is counted, until the next one is looked for; -1: there is no room for one more. */
  int find(long pane) {
    int place = place(pane);
    if (counts[place] >= 0) {
      return place;
    }
    if (used >= capacity) {
      return -1;
    }
    if (2 * used >= counts.length) {
      grow();
      place = place(pane);
    }
    used++;
    panes[place] = pane;
    counts[place] = 0;
    return place;
  }

  void add(int place) {
    counts[place]++;
  }

  /** The place of this pane, or the free one where it belongs. */
  private int place(long pane) {
    int mask = counts.length - 1;
    long mixed = pane * 0x9E3779B97F4A7C15L;
    int place = (int) (mixed >>> 32) & mask;
    while (counts[place] >= 0 && panes[place] != pane) {
      place = (place + 1) & mask;
    }
    return place;
  }

  private void grow() {
    long[] oldPanes = panes;
    long[] oldCounts = counts;
    panes = new long[2 * oldPanes.length];
    counts = new long[2 * oldCounts.length];
    Arrays.fill(counts, -1);
    for (int i = 0; i < oldCounts.length; i++) {
      if (oldCounts[i] >= 0) {
        int place = place(oldPanes[i]);
        panes[place] = oldPanes[i];
        counts[place] = oldCounts[i];
      }
    }
  }

  /** Hand out ends and counts, and start anew. Windows that never end have no rows that come too late. */
  byte[][] take(Plan plan) {
    int size = plan.whole() < 0 ? 0 : 8 * used;
    ByteBuffer ends = ByteBuffer.allocate(size).order(ByteOrder.nativeOrder());
    ByteBuffer rows = ByteBuffer.allocate(size).order(ByteOrder.nativeOrder());
    for (int i = 0; size > 0 && i < counts.length; i++) {
      if (counts[i] > 0) {
        ends.putLong(((panes[i] >> 1) + plan.whole() + (panes[i] & 1)) * plan.every());
        rows.putLong(counts[i]);
      }
    }
    clear();
    return new byte[][] {Arrays.copyOf(ends.array(), ends.position()), Arrays.copyOf(rows.array(), rows.position())};
  }
}

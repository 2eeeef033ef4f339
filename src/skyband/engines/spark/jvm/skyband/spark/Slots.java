package skyband.spark;

import java.util.Arrays;

/**
 * The best k rows of each (group, pane): one slot each, found through an open-addressing table that is at most half full.
 *
 * <p>A slot's rows are a heap with the worst of them on top, as pairs (key, time) in one array that grows with them.
 */
final class Slots {
  private static final int FIRST_SLOTS = 1 << 8;
  private static final int FIRST_ROWS = 4;

  private final int k;
  private final int capacity;
  private int[] table; // from a hash to a slot; -1 where free
  private long[] groups;
  private long[] panes;
  private long[][] heaps;
  private int[] sizes; // rows in a heap, [0, k]
  private int used; // slots
  private int room; // for rows, in all heaps

  Slots(int k, int capacity) {
    this.k = k;
    this.capacity = capacity;
    forget();
  }

  void forget() {
    table = new int[2 * FIRST_SLOTS];
    Arrays.fill(table, -1);
    groups = new long[FIRST_SLOTS];
    panes = new long[FIRST_SLOTS];
    heaps = new long[FIRST_SLOTS][];
    sizes = new int[FIRST_SLOTS];
    used = 0;
    room = 0;
  }

  boolean isFull() {
    return room > capacity;
  }

  int find(long group, long pane) {
    int place = place(group, pane);
    while (table[place] >= 0) {
      int slot = table[place];
      if (groups[slot] == group && panes[slot] == pane) {
        return slot;
      }
      place = (place + 1) & (table.length - 1);
    }
    if (used == groups.length) {
      grow();
      return find(group, pane);
    }
    table[place] = used;
    groups[used] = group;
    panes[used] = pane;
    sizes[used] = 0;
    return used++;
  }

  private int place(long group, long pane) {
    long mixed = group * 0x9E3779B97F4A7C15L ^ pane * 0xC2B2AE3D27D4EB4FL;
    mixed = (mixed ^ (mixed >>> 29)) * 0x165667B19E3779F9L;
    return (int) (mixed ^ (mixed >>> 32)) & (table.length - 1);
  }

  private void grow() {
    int size = 2 * groups.length;
    groups = Arrays.copyOf(groups, size);
    panes = Arrays.copyOf(panes, size);
    heaps = Arrays.copyOf(heaps, size);
    sizes = Arrays.copyOf(sizes, size);
    table = new int[2 * size];
    Arrays.fill(table, -1);
    for (int slot = 0; slot < used; slot++) {
      int place = place(groups[slot], panes[slot]);
      while (table[place] >= 0) {
        place = (place + 1) & (table.length - 1);
      }
      table[place] = slot;
    }
  }

  /** Take a row in. False: k rows of the slot rank before it. */
  boolean offer(int slot, long key, long time) {
    long[] heap = heaps[slot];
    int size = sizes[slot];
    if (size == k) {
      if (key < heap[0] || (key == heap[0] && time < heap[1])) {
        return false;
      }
      if (key != heap[0] || time != heap[1]) {
        sink(heap, size, key, time);
      }
      return true;
    }
    if (heap == null || 2 * size == heap.length) {
      int rows = heap == null ? Math.min(k, FIRST_ROWS) : Math.min(k, 2 * size);
      heap = heaps[slot] = heap == null ? new long[2 * rows] : Arrays.copyOf(heap, 2 * rows);
      room += rows - size;
    }
    sizes[slot] = size + 1;
    rise(heap, size, key, time);
    return true;
  }

  /** Put a row at the end of a heap, and let it rise above those that rank before it. */
  private static void rise(long[] heap, int at, long key, long time) {
    while (at > 0) {
      int above = (at - 1) >> 1;
      if (heap[2 * above] < key || (heap[2 * above] == key && heap[2 * above + 1] <= time)) {
        break;
      }
      heap[2 * at] = heap[2 * above];
      heap[2 * at + 1] = heap[2 * above + 1];
      at = above;
    }
    heap[2 * at] = key;
    heap[2 * at + 1] = time;
  }

  /** Put a row in the place of the worst, and let it sink below those that rank behind it. */
  private static void sink(long[] heap, int size, long key, long time) {
    int at = 0;
    while (2 * at + 1 < size) {
      int below = 2 * at + 1;
      int other = below + 1;
      if (other < size
          && (heap[2 * other] < heap[2 * below]
              || (heap[2 * other] == heap[2 * below] && heap[2 * other + 1] < heap[2 * below + 1]))) {
        below = other;
      }
      if (key < heap[2 * below] || (key == heap[2 * below] && time <= heap[2 * below + 1])) {
        break;
      }
      heap[2 * at] = heap[2 * below];
      heap[2 * at + 1] = heap[2 * below + 1];
      at = below;
    }
    heap[2 * at] = key;
    heap[2 * at + 1] = time;
  }
}

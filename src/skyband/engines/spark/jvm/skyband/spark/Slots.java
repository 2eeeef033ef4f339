package skyband.spark;

import java.util.Arrays;

/**
 * The best k rows of each group in one pane, in an open-addressing table that is at most three quarters full.
 *
 * <p>With many groups, most of the time goes into waiting for memory. So a table has nothing but what turns a row away: for
 * each group its number and the score of the worst of its k rows. The rest is touched only for rows that pass or tie.
 */
final class Slots {
  private static final int FIRST_PLACES = 4;
  private static final int FIRST_ROWS = 4;
  /** What a pane takes beside its rows, in rows. */
  static final int OVERHEAD = 8;

  /** The number of the rows without a group. */
  static final long NO_GROUP = 0x5BD1E9955BD1E995L;

  private static final long FREE = 0x6A09E667F3BCC909L;

  private final int k;
  private long[] table; // pairs (group, score of the worst row of k; until there are k, the least there is)
  private long[] times; // by place: the time of that row
  private long[][] heaps; // by place: the worst row on top, as pairs (key, time); none if k = 1
  private int[] sizes; // by place: rows in a heap, [0, k]
  private int used; // groups
  private int room = OVERHEAD; // for rows, in all groups

  Slots(int k) {
    this.k = k;
    resize(FIRST_PLACES);
  }

  /** Would a group of this number be taken for something else? Its rows cannot be told apart, so none is ruled out. */
  static boolean isReserved(long group) {
    return group == FREE || group == NO_GROUP;
  }

  private void resize(int places) {
    table = new long[2 * places];
    for (int place = 0; place < places; place++) {
      table[2 * place] = FREE;
    }
    times = new long[places];
    heaps = k == 1 ? null : new long[places][];
    sizes = k == 1 ? null : new int[places];
  }

  /** For how many rows it has taken memory. */
  int room() {
    return room;
  }

  /** The place of a group, until another one is looked for; a new one if there is none. */
  int find(long group) {
    int place = place(group);
    if (table[2 * place] == group) {
      return place;
    }
    if (4 * (used + 1) > 3 * times.length) {
      grow();
      place = place(group);
    }
    used++;
    if (k == 1) {
      room++;
    }
    table[2 * place] = group;
    table[2 * place + 1] = times[place] = Long.MIN_VALUE;
    return place;
  }

  /** Where the group is, or the free place where it belongs. */
  private int place(long group) {
    int last = times.length - 1;
    long mixed = group * 0x9E3779B97F4A7C15L;
    int place = (int) (mixed ^ (mixed >>> 32)) & last;
    while (table[2 * place] != group && table[2 * place] != FREE) {
      place = (place + 1) & last;
    }
    return place;
  }

  private void grow() {
    long[] oldTable = table;
    long[] oldTimes = times;
    long[][] oldHeaps = heaps;
    int[] oldSizes = sizes;
    resize(2 * oldTimes.length);
    for (int old = 0; old < oldTimes.length; old++) {
      if (oldTable[2 * old] != FREE) {
        int place = place(oldTable[2 * old]);
        table[2 * place] = oldTable[2 * old];
        table[2 * place + 1] = oldTable[2 * old + 1];
        times[place] = oldTimes[old];
        if (k > 1) {
          heaps[place] = oldHeaps[old];
          sizes[place] = oldSizes[old];
        }
      }
    }
  }

  /** Take a row in. False: k rows of its group rank before it. */
  boolean offer(int place, long key, long time) {
    long worst = table[2 * place + 1];
    if (key < worst || (key == worst && time < times[place])) {
      return false;
    }
    if (k == 1) {
      table[2 * place + 1] = key;
      times[place] = time;
    } else {
      add(place, key, time);
    }
    return true;
  }

  private void add(int place, long key, long time) {
    long[] heap = heaps[place];
    int size = sizes[place];
    if (size == k) {
      if (key == heap[0] && time == heap[1]) {
        return;
      }
      sink(heap, size, key, time);
    } else {
      if (heap == null || 2 * size == heap.length) {
        int rows = Math.min(k, heap == null ? FIRST_ROWS : 2 * size);
        heap = heaps[place] = heap == null ? new long[2 * rows] : Arrays.copyOf(heap, 2 * rows);
        room += rows - size;
      }
      sizes[place] = ++size;
      rise(heap, size - 1, key, time);
    }
    if (size == k) {
      table[2 * place + 1] = heap[0];
      times[place] = heap[1];
    }
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

// How few items' chunks are divided among the threads.
#include <gtest/gtest.h>

#include <mutex>
#include <set>
#include <vector>

#include "base/threads.h"
#include "ops/paged_attention/rows.h"

namespace headroom {
namespace {

struct Attended {
  std::mutex mutex;
  std::multiset<const float*> chunks;  // by the place of their result
  std::vector<int64_t> ranges;         // chunks of each thread's range
};

Attended* attended = nullptr;

struct RecordingTile {
  explicit RecordingTile(const PagedCall&) {}
  ~RecordingTile() {
    const std::lock_guard lock(attended->mutex);
    attended->ranges.push_back(count);
  }
  void attend(const PagedItem& item, int64_t chunk) {
    const std::lock_guard lock(attended->mutex);
    attended->chunks.insert(item.o(chunk));
    ++count;
  }

  int64_t count = 0;
};

// Rows at these positions of sequences that may have 64 times as many.
void share(const std::vector<int32_t>& positions, int64_t window, Attended& found) {
  constexpr int64_t kChunk = 64;
  const auto rows = static_cast<int64_t>(positions.size());
  std::vector<int32_t> owners(positions.size());
  for (size_t i = 0; i < owners.size(); ++i) owners[i] = static_cast<int32_t>(i);
  PagedCall call;
  call.shape = {.rows = rows, .heads = 4, .kv_heads = 2, .dim = 32, .head_width = 32, .tables = rows};
  call.shape.block_tokens = kChunk, call.shape.table_blocks = 256, call.shape.window = window;
  call.owners = owners.data(), call.offset = positions.data();
  std::vector<float> o(static_cast<size_t>(rows) * 4 * 32);
  call.o = o.data();
  const PagedCut cut{kChunk, 16, 16};
  std::vector<float> slots(static_cast<size_t>(paged_items(call.shape, cut) * paged_slot_floats(call.shape, cut)));
  attended = &found;
  share_paged_chunks<RecordingTile>(call, cut, slots.data());
}

TEST(SharedChunks, AreDividedEvenlyHoweverShortTheSequences) {
  const int before = threads();
  set_threads(2);
  for (const int64_t window : {0, 100})
    for (const std::vector<int32_t>& positions :
         {std::vector<int32_t>{5, 70, 180, 300}, {0}, {63}, {200}, {-1, 130, -1}, std::vector<int32_t>(16, 190)}) {
      Attended found;
      share(positions, window, found);
      int64_t chunks = 0;
      for (const int32_t position : positions) {
        const int64_t begin = window > 0 ? std::max<int64_t>(0, position - window + 1) : 0;
        chunks += position < 0 ? 0 : 2 * (position / 64 - begin / 64 + 1);  // for each kv head
      }
      EXPECT_EQ(static_cast<int64_t>(found.chunks.size()), chunks);
      EXPECT_EQ(std::set<const float*>(found.chunks.begin(), found.chunks.end()).size(), found.chunks.size());
      for (const int64_t count : found.ranges) EXPECT_LE(count, (chunks + 1) / 2);
    }
  set_threads(before);
}

}  // namespace
}  // namespace headroom

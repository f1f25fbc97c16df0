#include "generate/prefix_index.h"

#include <gtest/gtest.h>

#include <vector>

#include "base/error.h"
#include "generate/block_pool.h"
#include "generate/block_store.h"

namespace headroom {
namespace {

constexpr int32_t kRoot = PrefixIndex::kNone;
using Ids = std::vector<int32_t>;

TEST(BlockPool, CountsOwners) {
  BlockPool pool(3);
  const int32_t a = pool.take(), b = pool.take();
  EXPECT_NE(a, b);
  EXPECT_EQ(pool.share(a), 2);
  EXPECT_EQ(pool.release(a), 1);
  EXPECT_EQ(pool.free(), 1);
  EXPECT_EQ(pool.release(a), 0);
  EXPECT_EQ(pool.take(), a) << "the one that was freed last";
  pool.take();
  EXPECT_THROW(pool.take(), InternalError);
  pool.release(b);
  EXPECT_THROW(pool.release(b), InternalError);
  EXPECT_THROW(pool.share(b), InternalError);
  pool.check();
}

// All entries in one bucket: the tokens and the previous block decide.
TEST(PrefixIndex, FindsByTokensWhateverTheHash) {
  for (const int64_t buckets : {0, 1}) {
    PrefixIndex index(8, 2, buckets);
    index.insert(3, kRoot, Ids{1, 2});
    index.insert(5, 3, Ids{1, 2});
    index.insert(0, kRoot, Ids{2, 1});
    EXPECT_EQ(index.find(kRoot, Ids{1, 2}), 3);
    EXPECT_EQ(index.find(3, Ids{1, 2}), 5);
    EXPECT_EQ(index.find(kRoot, Ids{2, 1}), 0);
    EXPECT_EQ(index.find(3, Ids{2, 1}), kRoot);
    EXPECT_EQ(index.find(5, Ids{1, 2}), kRoot);
    EXPECT_EQ(index.find(0, Ids{1, 2}), kRoot);
    index.check();
  }
}

TEST(PrefixIndex, EvictsTheOldestAndChildrenFirst) {
  PrefixIndex index(8, 1);
  index.insert(0, kRoot, Ids{10});
  index.insert(1, 0, Ids{11});
  index.insert(2, 0, Ids{12});
  EXPECT_THROW(index.evict(), InternalError);
  index.keep(1);
  index.keep(2);
  index.keep(0);
  index.check();
  // The text that ends at 1 is used again.
  index.use(0);
  index.use(1);
  index.keep(1);
  index.keep(0);
  index.check();
  EXPECT_EQ(index.evict(), 2);
  EXPECT_EQ(index.find(0, Ids{12}), kRoot);
  EXPECT_EQ(index.evict(), 1);
  EXPECT_EQ(index.evict(), 0);
  EXPECT_EQ(index.size() + index.kept(), 0);
  index.insert(0, kRoot, Ids{13});
  EXPECT_EQ(index.find(kRoot, Ids{10}), kRoot);
  index.check();
}

TEST(PrefixIndex, AnOrderThatLosesAParentIsFound) {
  PrefixIndex index(4, 1);
  index.insert(0, kRoot, Ids{1});
  index.insert(1, 0, Ids{2});
  index.keep(0);
  EXPECT_THROW(index.check(), InternalError);
  EXPECT_THROW(index.evict(), InternalError);
}

TEST(BlockStore, PromisesNoMoreThanThereIs) {
  BlockStore store(6, 2, true);
  SequenceBlocks a, b, c;
  const Ids text = {1, 2, 3, 4, 5};
  ASSERT_TRUE(store.admit(a, text, 4, Promise::whole, true));
  EXPECT_FALSE(store.admit(b, text, 3, Promise::whole, true));
  ASSERT_TRUE(store.admit(b, text, 2, Promise::whole, true));
  store.grow(a, 3);
  store.commit(a, text, 5);
  EXPECT_EQ(store.used(), 3);
  store.release(a);
  EXPECT_EQ(store.kept(), 2);
  // Shares the two full blocks: two more are enough, besides the two that b may take.
  ASSERT_TRUE(store.admit(c, text, 4, Promise::whole, true));
  EXPECT_EQ(c.table.size(), 2u);
  EXPECT_FALSE(store.admit(a, {text.data(), 1}, 1, Promise::whole, true));
  const SequenceBlocks* const all[] = {&b, &c};
  store.check(all);
  store.grow(b, 2);
  store.grow(c, 4);
  EXPECT_EQ(store.used(), 6);
  EXPECT_THROW(store.grow(c, 5), InternalError);
  store.check(all);
}

// Two sequences computed the same block: one copy is kept.
TEST(BlockStore, EqualBlocksBecomeOne) {
  BlockStore store(6, 2, true);
  SequenceBlocks a, b;
  const Ids text = {1, 2, 3, 4, 5};
  ASSERT_TRUE(store.admit(a, text, 3, Promise::whole, true));
  ASSERT_TRUE(store.admit(b, text, 3, Promise::whole, true));
  store.grow(a, 2);
  store.grow(b, 1);
  store.commit(a, text, 4);
  store.commit(b, text, 2);
  EXPECT_EQ(a.table[0], b.table[0]);
  EXPECT_EQ(store.used(), 2);
  EXPECT_TRUE(store.follow(b, text));
  EXPECT_EQ(a.table, b.table);
  EXPECT_FALSE(store.follow(b, text)) << "the next block holds the last token";
  const SequenceBlocks* const all[] = {&a, &b};
  store.check(all);
  store.release(a);
  EXPECT_EQ(store.kept(), 0);
  store.release(b);
  EXPECT_EQ(store.kept(), 2);
  store.check({});
}

TEST(BlockStore, ACheckFindsABlockThatIsLost) {
  BlockStore store(6, 2, true);
  SequenceBlocks a;
  ASSERT_TRUE(store.admit(a, Ids{1, 2, 3}, 3, Promise::whole, true));
  store.grow(a, 1);
  EXPECT_THROW(store.check({}), InternalError);
  SequenceBlocks other = a;
  const SequenceBlocks* const twice[] = {&a, &other};
  EXPECT_THROW(store.check(twice), InternalError);
}

}  // namespace
}  // namespace headroom

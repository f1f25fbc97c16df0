#include "data/token_cache.h"

#include <gtest/gtest.h>

#include "../formats/expect_error.h"
#include "../formats/temporary_directory.h"
#include "base/error.h"
#include "data/token_cache_writer.h"

namespace headroom {
namespace {

using Ids = std::vector<int32_t>;

struct Sequence {
  Ids ids, labels;
};

Sequence read(const TokenCache& cache, int64_t i) {
  Ids ids(static_cast<size_t>(cache.max_seq_length())), labels(ids.size());
  const SequenceInfo info = cache.read(i, ids, labels);
  EXPECT_EQ(info.length, cache.info(i).length);
  EXPECT_EQ(info.targets, cache.info(i).targets);
  ids.resize(static_cast<size_t>(info.length));
  labels.resize(static_cast<size_t>(info.length));
  return {ids, labels};
}

TEST(TokenCache, KeepsSequencesInBothWidths) {
  for (const int64_t vocab : {256, 65536, 65537, 1 << 20}) {
    TemporaryDirectory directory;
    const auto path = directory / "tokens.cache";
    const auto top = static_cast<int32_t>(vocab - 1);
    {
      TokenCacheWriter writer(path, 99, 5, vocab);
      writer.append(Ids{1, 2, top, 4, 5}, 0);
      writer.append(Ids{7, 8, 9}, 2);
      writer.append(Ids{3, 4, 5, 6}, Ids{-100, -100, 5, 6});
      writer.append(Ids{3, 4, 5}, Ids{9, -100, top});
      writer.append(Ids{top}, 0);
      writer.append(Ids{1, 2}, Ids{-100, -100});
      EXPECT_FALSE(std::filesystem::exists(path));
      DataCounts counts;
      counts.rows = 8;
      counts.empty_rows = 2;
      counts.lost_tokens = 17;
      const DataCounts all = writer.finish(counts);
      EXPECT_EQ(all.sequences, 6);
      EXPECT_EQ(all.tokens, 18);
      EXPECT_EQ(all.targets, 4 + 1 + 2 + 1 + 0 + 0);
      EXPECT_EQ(all.longest, 5);
    }
    const TokenCache cache = TokenCache::open(path);
    EXPECT_EQ(cache.sequences(), 6);
    EXPECT_EQ(cache.key(), 99u);
    EXPECT_EQ(cache.max_seq_length(), 5);
    EXPECT_EQ(cache.counts().rows, 8);
    EXPECT_EQ(cache.counts().lost_tokens, 17);
    EXPECT_EQ(cache.file_bytes(), static_cast<int64_t>(std::filesystem::file_size(path)));
    EXPECT_EQ(read(cache, 0).ids, (Ids{1, 2, top, 4, 5}));
    EXPECT_EQ(read(cache, 0).labels, (Ids{1, 2, top, 4, 5}));
    EXPECT_EQ(read(cache, 1).labels, (Ids{-100, -100, 9}));
    EXPECT_EQ(read(cache, 2).labels, (Ids{-100, -100, 5, 6}));
    EXPECT_EQ(read(cache, 3).ids, (Ids{3, 4, 5}));
    EXPECT_EQ(read(cache, 3).labels, (Ids{9, -100, top}));
    EXPECT_EQ(read(cache, 4).ids, (Ids{top}));
    EXPECT_EQ(read(cache, 5).labels, (Ids{-100, -100}));
    EXPECT_THROW(cache.info(6), InternalError);
    EXPECT_EQ(std::distance(std::filesystem::directory_iterator(directory.path()), {}), 1);
  }
}

TEST(TokenCache, KeepsAClassPerSequence) {
  TemporaryDirectory directory;
  {
    TokenCacheWriter writer(directory / "c", 1, 4, 300, LabelKind::sequence_class);
    writer.append_class(Ids{5}, 0);
    writer.append_class(Ids{7, 8, 9}, 70000);
    EXPECT_THROW(writer.append(Ids{1}, 0), InternalError);
    EXPECT_THROW(writer.append_class(Ids{1}, -1), InternalError);
    EXPECT_EQ(writer.finish({}).targets, 2);
  }
  const TokenCache cache = TokenCache::open(directory / "c");
  EXPECT_EQ(cache.labels(), LabelKind::sequence_class);
  Ids ids(4), labels(4);
  EXPECT_EQ(cache.read(0, ids, labels).class_label, 0);
  EXPECT_EQ(cache.read(1, ids, labels).class_label, 70000);
  EXPECT_EQ(read(cache, 1).ids, (Ids{7, 8, 9}));
  EXPECT_EQ(read(cache, 1).labels, (Ids{-100, -100, -100}));
  EXPECT_EQ(cache.info(1).targets, 1);
}

TEST(TokenCache, KeepsLabelsOfTheirOwnPosition) {
  TemporaryDirectory directory;
  {
    TokenCacheWriter writer(directory / "c", 1, 4, 300, LabelKind::own_position);
    writer.append(Ids{5, 6, 7}, 0);
    writer.append(Ids{5, 6}, Ids{5, 6});
    writer.append(Ids{1, 2}, Ids{9, -100});
    EXPECT_THROW(writer.append(Ids{1, 2}, 1), InternalError);
    EXPECT_EQ(writer.finish({}).targets, 3 + 2 + 1);
  }
  const TokenCache cache = TokenCache::open(directory / "c");
  EXPECT_TRUE(cache.info(0).unmasked);
  EXPECT_EQ(read(cache, 0).labels, (Ids{5, 6, 7}));
  EXPECT_FALSE(cache.info(1).unmasked);
  EXPECT_EQ(read(cache, 1).labels, (Ids{5, 6}));
  EXPECT_EQ(read(cache, 2).labels, (Ids{9, -100}));
  EXPECT_EQ(cache.info(2).targets, 1);
}

TEST(TokenCache, AnUnfinishedOneLeavesNothing) {
  TemporaryDirectory directory;
  { TokenCacheWriter(directory / "c", 1, 4, 10).append(Ids{1, 2}, 0); }
  EXPECT_TRUE(std::filesystem::is_empty(directory.path()));
  expect_error(ErrorKind::usage, "c", [&] { TokenCache::open(directory / "c"); });
  expect_error(ErrorKind::run, "nowhere", [&] { TokenCacheWriter(directory / "nowhere/c", 1, 4, 10); });
}

std::string small_cache(const TemporaryDirectory& directory) {
  TokenCacheWriter writer(directory / "c", 1, 4, 300);
  writer.append(Ids{1, 2, 3}, 1);
  writer.append(Ids{4, 5, 6, 7}, Ids{-100, 1, -100, 2});
  writer.finish({});
  return read_text(directory / "c");
}

// A flipped bit in any byte is detected: at opening, or when reading the damaged sequence.
TEST(TokenCache, FlippedBitsAreFound) {
  TemporaryDirectory directory;
  const std::string good = small_cache(directory);
  size_t found = 0;
  for (size_t i = 0; i < good.size(); ++i) {
    std::string bad = good;
    bad[i] = static_cast<char>(bad[i] ^ (1 << i % 8));
    const auto path = directory.write("bad", bad);
    try {
      const TokenCache cache = TokenCache::open(path);
      for (int64_t k = 0; k < cache.sequences(); ++k) read(cache, k);
    } catch (const Error& e) {
      ++found;
      EXPECT_EQ(e.kind(), ErrorKind::format);
      EXPECT_EQ(e.remedy(), "delete it; it is rebuilt from the data");
    }
  }
  // The padding after the 3 ids of 2 bytes, and before the index, is not checked.
  EXPECT_GE(found, good.size() - (2 + 4));
}

TEST(TokenCache, CutOrForeignFilesAreRefused) {
  TemporaryDirectory directory;
  const std::string good = small_cache(directory);
  const auto open = [&](const std::string& content) {
    return [&directory, content] { TokenCache::open(directory.write("bad", content)); };
  };
  expect_error(ErrorKind::format, "0 bytes are too few", open(""));
  expect_error(ErrorKind::format, "does not begin with HRTOKEN1", open(std::string(500, 'x')));
  expect_error(ErrorKind::format, "bytes, ", open(good.substr(0, good.size() - 1)));
  expect_error(ErrorKind::format, "bytes, ", open(good + "x"));
  std::string other = good;
  other[8] = 9;
  expect_error(ErrorKind::format, "has version 9, this program reads version 4", open(other));
  for (size_t size = 0; size < good.size(); ++size) EXPECT_THROW(open(good.substr(0, size))(), Error);
}

}  // namespace
}  // namespace headroom

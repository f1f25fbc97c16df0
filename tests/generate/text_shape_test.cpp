// Which texts a loaded model gives as a plan for each alone does.
#include "engine/text_shape.h"

#include <gtest/gtest.h>

namespace headroom {
namespace {

ModelSpec spec_of(int64_t positions) {
  ModelSpec spec;
  spec.max_positions = positions;
  return spec;
}

TEST(TextShape, HasRoomForLongerTextsAndAProgramForEachChunk) {
  const TextShape shape = roomy_shape(spec_of(2048), 10);
  EXPECT_EQ(shape.positions, 1024);
  EXPECT_EQ(shape.chunks, (std::vector<int64_t>{512, 256, 128, 64, 32, 16, 8, 4, 1}));
  EXPECT_EQ(roomy_shape(spec_of(2048), 1025).positions, 2048);
  EXPECT_EQ(roomy_shape(spec_of(1500), 1025).positions, 1500);
  EXPECT_EQ(roomy_shape(spec_of(64), 10).chunks.front(), 64);
}

TEST(TextShape, ReadsAPromptInItsOwnChunks) {
  const ModelSpec spec = spec_of(2048);
  const TextShape shape = roomy_shape(spec, 10);
  EXPECT_EQ(shape.prefill_for(spec, 5, 3), "prefill@8");
  EXPECT_EQ(shape.prefill_for(spec, 1, 1023), "prefill@1");
  EXPECT_EQ(shape.prefill_for(spec, 900, 124), "prefill");
  EXPECT_EQ(shape.prefill_for(spec, 900, 125), std::nullopt) << "longer than the cache";
}

// Planned for 12 tokens and 28 more, with less than the chunk of 16 that such a prompt could take.
TEST(TextShape, OfOneTextServesWhatHasTheSamePlan) {
  const ModelSpec spec = spec_of(2048);
  const TextShape shape{40, {4}, 16};
  EXPECT_EQ(shape.prefill_for(spec, 12, 28), "prefill");
  EXPECT_EQ(shape.prefill_for(spec, 12, 27), std::nullopt) << "a smaller cache might leave room for a larger chunk";
  EXPECT_EQ(shape.prefill_for(spec, 3, 10), "prefill") << "which takes chunks of 4 anyway";
  EXPECT_EQ(shape.prefill_for(spec, 5, 10), std::nullopt);
}

TEST(TextShape, StaysOnItsSideOfTheOriginalContext) {
  ModelSpec spec = spec_of(4096);
  spec.rope_scaling.type = RopeType::longrope;
  spec.rope_scaling.original_max_position = 800;
  const TextShape shorter = roomy_shape(spec, 700), longer = roomy_shape(spec, 801);
  EXPECT_EQ(shorter.positions, 800);
  EXPECT_EQ(longer.positions, 1024);
  EXPECT_TRUE(longer.prefill_for(spec, 800, 1));
  EXPECT_FALSE(longer.prefill_for(spec, 700, 100)) << "takes the other factors";
}

}  // namespace
}  // namespace headroom

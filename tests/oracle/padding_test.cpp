// Fresh tables start with zeros in the padding row, as in transformers: lookups never train it.
#include <gtest/gtest.h>

#include <algorithm>

#include "golden_case.h"
#include "weights/fresh_weights.h"

namespace headroom::test {
namespace {

TEST(Padding, RowsOfFreshTablesAreZeros) {
  const ModelSpec spec = GoldenCase::open("roberta_padding").model.spec;
  ASSERT_EQ(spec.padding_row, 1);
  int tables = 0;
  for (const WeightInfo& weight : model_weights(spec)) {
    if (weight.zero_row < 0) continue;
    SCOPED_TRACE(weight.name);
    ++tables;
    std::vector<float> whole(static_cast<size_t>(weight.shape[0] * weight.shape[1])), pieces(whole.size());
    draw_weight(weight, spec, 7, 0, whole);
    for (size_t at = 0; at < pieces.size(); at += 5)
      draw_weight(weight, spec, 7, static_cast<int64_t>(at),
                  std::span(pieces).subspan(at, std::min<size_t>(5, pieces.size() - at)));
    EXPECT_EQ(pieces, whole);
    const auto width = static_cast<size_t>(weight.shape[1]);
    for (size_t i = 0; i < whole.size(); ++i) EXPECT_EQ(whole[i] == 0, i / width == 1) << i;
  }
  EXPECT_EQ(tables, 2);  // tokens and positions
}

}  // namespace
}  // namespace headroom::test

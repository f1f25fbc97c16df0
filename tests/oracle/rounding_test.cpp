// bf16-mixed rounds like torch's autocast: the distance of each tensor's gradients from fp32's, over eight batches,
// against autocast's distance (rounding.json). Rounding is chaotic, so the test compares the size of errors and no
// single numbers; README.md derives the band.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <numeric>

#include "training_run.h"

namespace headroom::test {
namespace {

using LogErrors = std::map<std::string, double>;  // indexed by tensor

// rounding.json: ln of the L2 distance of a tensor's gradient from fp32, as the mean over the batches.
struct RoundingCase {
  explicit RoundingCase(const std::string& name)
      : golden(GoldenCase::open(name)), json(read_json(golden.folder / "rounding.json")) {}
  GoldenCase golden;
  Json json;

  int64_t batches() const { return json.at("batches").get<int64_t>(); }
  double spread() const { return json.at("spread").get<double>(); }
  double of(const std::string& tensor, const char* key) const {
    return json.at("tensors").at(tensor).at(key).get<double>();
  }
  // The root mean square of the tensors' spreads; a single spread is known only from nine samples.
  double tensor_spread() const {
    double squares = 0;
    for (const auto& [name, row] : json.at("tensors").items()) squares += std::pow(row.at("spread").get<double>(), 2);
    return std::sqrt(squares / static_cast<double>(json.at("tensors").size()));
  }
  // torch's result with a wrong arithmetic, minus its autocast.
  LogErrors wrong(const char* key) const {
    LogErrors out;
    for (const auto& [name, row] : json.at("tensors").items()) out[name] = row.at(key).get<double>();
    return out;
  }
};

// The batch with this number in make_rounding.py.
GoldenCase other_batch(const GoldenCase& golden, int64_t number) {
  constexpr int64_t kSpecial = 3;
  const ModelSpec& spec = golden.model.spec;
  const auto moved = [&](int32_t id) {
    if (id < kSpecial) return id;
    return static_cast<int32_t>(kSpecial + (id - kSpecial + 17 * number) % (spec.vocab - kSpecial));
  };
  GoldenCase other = golden;
  for (std::vector<int32_t>& row : other.ids) std::transform(row.begin(), row.end(), row.begin(), moved);
  for (std::vector<int32_t>& row : other.labels)
    for (int32_t& label : row)
      if (label >= 0)
        label = spec.objective == Objective::classification ? static_cast<int32_t>((label + number) % spec.classes)
                                                            : moved(label);
  return other;
}

// Gradients of every batch in a precision. The learning rate is 0, so the weights do not change.
std::vector<Gradients> gradients_of(const RoundingCase& rounding, const char* precision, int64_t micro_batch = 4) {
  GoldenCase golden = rounding.golden;
  TrainOptions options = plain_options(golden);
  options.data.micro_batch_size = micro_batch;
  options.techniques.precision = precision;
  TrainingRun run(golden, options);
  std::vector<Gradients> out;
  for (int64_t number = 0; number < rounding.batches(); ++number) {
    const GoldenCase other = other_batch(rounding.golden, number);
    golden.ids = other.ids;
    golden.labels = other.labels;
    out.push_back(run.step().gradients);
  }
  return out;
}

// How much further from `exact` the gradients are than autocast's with fused attention, which headroom's attention
// matches: its gradient reads the output rounded to bf16, and where the rest cancels (biases of keys) that is most of
// the error.
LogErrors beside_autocast(const RoundingCase& rounding, const std::vector<Gradients>& exact,
                          const std::vector<Gradients>& found) {
  LogErrors out;
  for (size_t number = 0; number < exact.size(); ++number)
    for (const auto& [name, gradient] : exact[number]) {
      const double distance = std::max(l2_distance(gradient, found[number].at(name)), 1e-30);
      out[name] += std::log(distance) / static_cast<double>(exact.size());
    }
  for (auto& [name, error] : out) error -= rounding.of(name, "autocast") + rounding.of(name, "fused");
  return out;
}

double mean_of(const LogErrors& errors) {
  const double sum =
      std::accumulate(errors.begin(), errors.end(), 0.0, [](double s, const auto& entry) { return s + entry.second; });
  return sum / static_cast<double>(errors.size());
}

// Half the log of two. Roundings add like independent errors, so twice or half as many change the sum by that much.
// Truncating instead of rounding doubles each error (from 1/sqrt(12) to 1/sqrt(3) of a bit): the log of two.
const double kHalf = std::log(2.0) / 2;

// The tensors whose error differs from autocast's.
std::vector<std::string> outside(const RoundingCase& rounding, const LogErrors& errors) {
  std::vector<std::string> names;
  for (const auto& [name, error] : errors) {
    const double spread = std::max(rounding.of(name, "spread"), rounding.tensor_spread());
    if (!(std::abs(error) <= kHalf + 4 * spread)) names.push_back(fmt::format("{} {:+.2f}", name, error));
  }
  return names;
}

// Compares the mean over the tensors.
bool is_autocasts(const RoundingCase& rounding, const LogErrors& errors) {
  return std::abs(mean_of(errors)) <= kHalf + 3 * rounding.spread();
}

class Rounding : public testing::TestWithParam<const char*> {};

TEST_P(Rounding, InBf16MixedIsAutocasts) {
  const RoundingCase rounding(GetParam());
  const LogErrors errors =
      beside_autocast(rounding, gradients_of(rounding, "32-true"), gradients_of(rounding, "bf16-mixed"));
  EXPECT_EQ(errors.size(), rounding.json.at("tensors").size());
  EXPECT_EQ(outside(rounding, errors), std::vector<std::string>{});
  EXPECT_TRUE(is_autocasts(rounding, errors)) << mean_of(errors);
  RecordProperty("mean", fmt::format("{:+.3f}", mean_of(errors)));
}

// Two runs in fp32 differ by the order of sums.
TEST_P(Rounding, InFp32IsToldApart) {
  const RoundingCase rounding(GetParam());
  const LogErrors errors =
      beside_autocast(rounding, gradients_of(rounding, "32-true"), gradients_of(rounding, "32-true", 1));
  EXPECT_EQ(outside(rounding, errors).size(), errors.size());
  EXPECT_FALSE(is_autocasts(rounding, errors)) << mean_of(errors);
  RecordProperty("mean", fmt::format("{:+.3f}", mean_of(errors)));
}

constexpr const char* kDense[] = {
    "llama_gqa_tied",      "qwen3",           "olmo2",      "gemma2",      "gemma3",       "gpt_neox",
    "gpt_neox_sequential", "phi3_longrope",   "starcoder2", "bert_masked", "bert_classes", "roberta_masked",
    "roberta_classes",     "gpt_neox_classes"};
constexpr const char* kExperts[] = {"mixtral", "qwen3_moe"};

std::string case_name(const testing::TestParamInfo<const char*>& info) { return info.param; }

INSTANTIATE_TEST_SUITE_P(Cases, Rounding, testing::ValuesIn(kDense), case_name);
INSTANTIATE_TEST_SUITE_P(Experts, Rounding, testing::ValuesIn(kExperts), case_name);

// torch with truncation where autocast rounds. If rounding sends tokens to other experts, the spread hides it.
class CutBits : public testing::TestWithParam<const char*> {};

TEST_P(CutBits, AreToldApart) {
  const RoundingCase rounding(GetParam());
  EXPECT_FALSE(is_autocasts(rounding, rounding.wrong("truncated"))) << mean_of(rounding.wrong("truncated"));
}

INSTANTIATE_TEST_SUITE_P(Cases, CutBits, testing::ValuesIn(kDense), case_name);

// All cases together are more sensitive. Everything that is bf16 in headroom is also bf16 in autocast, so that only the
// spread may make the errors larger; a model that is bf16 throughout is detected.
TEST(RoundingOfAllCases, IsNotWorseThanAutocasts) {
  double ours = 0, narrow = 0, squares = 0;
  for (const char* name : kDense) {
    const RoundingCase rounding(name);
    ours += mean_of(beside_autocast(rounding, gradients_of(rounding, "32-true"), gradients_of(rounding, "bf16-mixed")));
    narrow += mean_of(rounding.wrong("bf16"));
    squares += std::pow(rounding.spread(), 2);
  }
  constexpr double kCases = std::size(kDense);
  const double spread = std::sqrt(squares) / kCases;
  EXPECT_LE(ours / kCases, 4 * spread);
  EXPECT_GE(ours / kCases, -kHalf - 4 * spread);
  EXPECT_GT(narrow / kCases, 4 * spread);
  RecordProperty("mean", fmt::format("{:+.3f}, spread {:.3f}", ours / kCases, spread));
}

}  // namespace
}  // namespace headroom::test

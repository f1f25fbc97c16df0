// --optim and --optim-args, and how a step's scalars are set by name.
#include "optim/settings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>

#include "base/error.h"
#include "optim/optimizer.h"

namespace headroom {
namespace {

using testing::HasSubstr;
using testing::IsSupersetOf;

void expect_refused(std::string_view optimizer, std::string_view args, const std::string& message,
                    const std::string& remedy, const std::map<std::string, double, std::less<>>& familiar = {}) {
  try {
    OptimizerSettings(optimizer, args, familiar);
    FAIL() << args;
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::usage);
    EXPECT_THAT(error.what(), HasSubstr(message));
    EXPECT_THAT(error.remedy(), HasSubstr(remedy));
  }
}

TEST(OptimizerSettings, AreTheUsualOnesUnlessGiven) {
  EXPECT_EQ(OptimizerSettings().text(), "beta1=0.9,beta2=0.999,eps=1e-08,loraplus_lr_ratio=1");
  EXPECT_EQ(OptimizerSettings("sgd", "").text(), "momentum=0,nesterov=false,loraplus_lr_ratio=1");
  const OptimizerSettings given("sgd", "nesterov=true,momentum=0.5");
  EXPECT_EQ(given.optimizer(), "sgd");
  EXPECT_EQ(given.value("momentum"), 0.5);
  EXPECT_TRUE(given.flag("nesterov"));
  EXPECT_EQ(OptimizerSettings("sgd", given.text()).text(), given.text());
  EXPECT_THROW(given.value("beta1"), InternalError);
}

TEST(OptimizerSettings, TakeFamiliarOptionsWhereTheOptimizerHasThem) {
  const std::map<std::string, double, std::less<>> beta{{"--adam-beta1", 0.8}};
  EXPECT_EQ(OptimizerSettings("adamw", "beta2=0.9", beta).text(), "beta1=0.8,beta2=0.9,eps=1e-08,loraplus_lr_ratio=1");
  EXPECT_EQ(OptimizerSettings("sgd", "", beta).text(), "momentum=0,nesterov=false,loraplus_lr_ratio=1");
  expect_refused("adamw", "beta1=0.7", "beta1=0.7 and --adam-beta1 set the same", "one of the two", beta);
}

TEST(OptimizerSettings, RefuseWhatTheyDoNotKnow) {
  expect_refused("adamwx", "", "--optim 'adamwx' is not known", "one of " + optimizers_text());
  expect_refused("sgd", "beta1=0.5", "--optim-args beta1: sgd has no such argument",
                 "sgd has momentum=0 (decay of the sum of gradients, 0 keeps none, 0 <= v < 1), nesterov=false (");
  expect_refused("sgd", "lr=0.5", "the rate is not an option of an optimizer", "--learning-rate");
  expect_refused("sgd", "weight_decay=0.5", "weight_decay", "--weight-decay");
  expect_refused("sgd", "momentum", "'momentum' is not key=value", "k=v,k=v");
  expect_refused("sgd", "momentum=0.5,", "'' is not key=value", "k=v,k=v");
  expect_refused("sgd", "momentum=0.5,momentum=0.6", "names 'momentum' twice", "once");
  for (const char* wrong : {"1", "-0.1", "nan", "inf", "0.5x", "", " 0.5"})
    expect_refused("sgd", std::string("momentum=") + wrong, "is not a legal value", "momentum takes 0 <= v < 1");
  expect_refused("sgd", "momentum=0.9,nesterov=2", "'2' is not a flag", "nesterov takes true or false");
  expect_refused("sgd", "nesterov=true", "nesterov=true without momentum", "momentum=0.9,nesterov=true");
}

TEST(StepScalars, AreFilledByName) {
  const Optimizer& adamw = find_optimizer("adamw");
  StepScalars scalars(adamw.scalars());
  scalars.set("learning_rate", 0.5);
  scalars.set("loss_scale", 0.25);
  scalars.set_key(0x0123456789abcdef, 7);
  adamw.fill(OptimizerSettings(), 2, scalars);
  EXPECT_EQ(scalars.values()[kLearningRate], 0.5f);
  EXPECT_EQ(scalars.values()[kLossScale], 0.25f);
  EXPECT_EQ(scalars.values()[kOwnScalar[0]], static_cast<float>(1 - 0.9 * 0.9));
  EXPECT_EQ(std::bit_cast<uint32_t>(scalars.values()[kSeed]), 0x89abcdefu);
  EXPECT_EQ(std::bit_cast<uint32_t>(scalars.values()[kStep]), 7u);
  EXPECT_THROW(scalars.set("momentum", 1), InternalError);
}

// No position is used twice.
TEST(StepScalars, HaveAPlaceEach) {
  std::vector<int64_t> places{kLearningRate, kWeightDecay, kLossScale, kMaxGradNorm, kSeed,
                              kSeed + 1,     kStep,        kUnscale,   kDrawnLabels};
  for (int64_t i = 0; i < kOwnScalars; ++i) places.push_back(kOwnScalar[i]);
  std::sort(places.begin(), places.end());
  for (int64_t i = 0; i < kHyperCount; ++i) EXPECT_EQ(places[static_cast<size_t>(i)], i);
  EXPECT_EQ(places.size(), static_cast<size_t>(kHyperCount));
}

// In alphabetical order, each once. A new optimizer has a test of its own, and no place here.
TEST(Optimizers, AreRegistered) {
  const std::vector<std::string_view> names = optimizer_names();
  EXPECT_EQ(std::adjacent_find(names.begin(), names.end(), std::greater_equal<>()), names.end());
  EXPECT_THAT(names, IsSupersetOf({"adafactor", "adagrad", "adam", "adamw", "adamw_bnb_8bit", "lion_32bit", "lion_8bit",
                                   "muon", "rmsprop", "sgd"}));
}

TEST(Optimizers, AreListedWithTheirOtherNames) {
  EXPECT_THAT(optimizers_text(), HasSubstr("adam, adamw (adamw_torch, adamw_torch_fused, paged_adamw_32bit), "
                                           "adamw_bnb_8bit (adamw_8bit, paged_adamw_8bit), lion_32bit (lion, "
                                           "paged_lion_32bit), lion_8bit (paged_lion_8bit)"));
  for (const std::string_view name : optimizer_names()) EXPECT_THAT(optimizers_text(), HasSubstr(std::string(name)));
}

TEST(Optimizers, AreFoundByTheNamesOfTransformers) {
  EXPECT_EQ(OptimizerSettings("adamw_torch_fused", "").optimizer(), "adamw");
  EXPECT_TRUE(OptimizerSettings("paged_adamw_8bit", "").paged());
  EXPECT_FALSE(OptimizerSettings("adamw_8bit", "").paged());
  EXPECT_EQ(&find_optimizer("lion"), &find_optimizer("lion_32bit"));
}

}  // namespace
}  // namespace headroom

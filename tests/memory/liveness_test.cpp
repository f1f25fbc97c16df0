// Lifetimes and storages of small graphs, slot by slot.
#include "memory/liveness.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "ir/parse.h"
#include "ir/verify.h"
#include "ops/registry.h"

namespace headroom {
namespace {

// A graph from text, its liveness, and lookups by the names in the text.
class Lives {
 public:
  explicit Lives(const std::string& programs) {
    const std::string text =
        "graph \"g\" {\n  persistent %0: f32[16] parameter \"w\"\n  persistent %1: f32[16] gradient \"p\"\n" +
        programs + "}\n";
    graph_ = parse_graph(text, "g", find_op);
    verify_or_throw(graph_, "the test");
    liveness_ = analyze_liveness(graph_, graph_.bounds(), DeviceFacts{});
  }
  int32_t storage(const std::string& name) const {
    for (ValueId id = 0; id < static_cast<ValueId>(graph_.values.size()); ++id)
      if (graph_.value(id).name == name) return liveness_.storage_of_value[static_cast<size_t>(id)];
    return kNone;
  }
  // [lower, upper) of the value's storage.
  std::pair<int64_t, int64_t> life(const std::string& name) const {
    const StorageLife& at = liveness_.storages.at(static_cast<size_t>(storage(name)));
    return {at.lower, at.upper};
  }
  const Liveness& liveness() const { return liveness_; }

 private:
  Graph graph_;
  Liveness liveness_;
};

using Life = std::pair<int64_t, int64_t>;

TEST(Liveness, AValueLivesFromItsDefinitionThroughItsLastUse) {
  const Lives lives(R"(program p {
    %2: f32[16] "a" = allocate() {dims="16", dtype="f32"}
    %3: f32[16] "b" = allocate() {dims="16", dtype="f32"}
    %4: f32[8] "c" = allocate() {dims="8", dtype="f32"}
    %5: f32[16] "d" = add(%2, %0)
    %6: f32[16] "e" = add(%3, %5)
  })");
  EXPECT_EQ(lives.life("b"), (Life{1, 5}));
  EXPECT_EQ(lives.life("c"), (Life{2, 3}));  // never read: live where it is written
  EXPECT_EQ(lives.liveness().slots.size(), 5u);
}

TEST(Liveness, PersistentValuesLiveOverEveryProgram) {
  const Lives lives(R"(program p {
    %2: f32[16] "a" = allocate() {dims="16", dtype="f32"}
  }
  program q {
    %3: f32[16] "b" = allocate() {dims="16", dtype="f32"}
  })");
  EXPECT_EQ(lives.life("w"), (Life{0, 2}));
  EXPECT_EQ(lives.life("p"), (Life{0, 2}));
  EXPECT_EQ(lives.life("a"), (Life{0, 1}));
  EXPECT_EQ(lives.life("b"), (Life{1, 2}));
  EXPECT_EQ(lives.liveness().program_slots, (std::vector<Life>{{0, 1}, {1, 2}}));
}

TEST(Liveness, ProgramResultsLiveToTheProgramsEnd) {
  const Lives lives(R"(program p {
    %2: f32[16] "a" = allocate() {dims="16", dtype="f32"}
    %3: f32[16] "b" = allocate() {dims="16", dtype="f32"}
    yield %2
  })");
  EXPECT_EQ(lives.life("a"), (Life{0, 2}));
  EXPECT_EQ(lives.life("b"), (Life{1, 2}));
}

TEST(Liveness, AnOutputTakesOverTheStorageOfADyingInput) {
  const Lives lives(R"(program p {
    %2: f32[16] "a" = allocate() {dims="16", dtype="f32"}
    %3: f32[16] "b" = gelu(%2) {approximate="tanh"}
    %4: f32[16] "c" = gelu(%3) {approximate="tanh"}
  })");
  EXPECT_EQ(lives.storage("a"), lives.storage("b"));
  EXPECT_EQ(lives.storage("a"), lives.storage("c"));
  EXPECT_EQ(lives.life("a"), (Life{0, 3}));
}

TEST(Liveness, AnInputReadLaterKeepsItsStorage) {
  const Lives lives(R"(program p {
    %2: f32[16] "a" = allocate() {dims="16", dtype="f32"}
    %3: f32[16] "b" = gelu(%2) {approximate="tanh"}
    %4: f32[16] "c" = add(%3, %2)
  })");
  EXPECT_NE(lives.storage("a"), lives.storage("b"));
  EXPECT_EQ(lives.life("b").first, 1);
}

TEST(Liveness, PersistentAndRepeatedInputsAreNotTakenOver) {
  const Lives lives(R"(program p {
    %2: f32[16] "a" = allocate() {dims="16", dtype="f32"}
    %3: f32[16] "b" = add(%2, %2)
    %4: f32[16] "c" = gelu(%0) {approximate="tanh"}
  })");
  EXPECT_NE(lives.storage("a"), lives.storage("b"));
  EXPECT_NE(lives.storage("w"), lives.storage("c"));
}

TEST(Liveness, AccumulatorsShareTheStorageTheyUpdate) {
  const Lives lives(R"(program p {
    %2: f32[16] "a" = allocate() {dims="16", dtype="f32"}
    %3: f32[16] "sum" = accumulate(%2, %1) {accumulate="always"}
  })");
  EXPECT_EQ(lives.storage("sum"), lives.storage("p"));
}

TEST(Liveness, LoopCarriedValuesShareOneStorageOverTheLoop) {
  const Lives lives(R"(program p {
    %2: f32[16] "start" = allocate() {dims="16", dtype="f32"}
    %3: f32[16] "end" = loop(%2) {trips="n"} (%4: f32[16] "param") {
      %5: f32[16] "fresh" = allocate() {dims="16", dtype="f32"}
      %6: f32[16] "sum" = accumulate(%5, %4) {accumulate="carried"}
      yield %6
    }
    %7: f32[16] "after" = add(%3, %0)
  })");
  for (const char* name : {"end", "param", "sum"}) EXPECT_EQ(lives.storage(name), lives.storage("start")) << name;
  // Slots: allocate, begin, allocate, accumulate, end, add.
  EXPECT_EQ(lives.liveness().slots.size(), 6u);
  EXPECT_EQ(lives.life("start").first, 0);
  EXPECT_GE(lives.life("start").second, 6);
  EXPECT_EQ(lives.life("fresh"), (Life{2, 4}));
}

TEST(Liveness, WhatALoopReadsFromOutsideLivesUntilItEnds) {
  const Lives lives(R"(program p {
    %2: f32[16] "outer" = allocate() {dims="16", dtype="f32"}
    %3: f32[16] "start" = allocate() {dims="16", dtype="f32"}
    %4: f32[16] "end" = loop(%3) {trips="n"} (%5: f32[16] "param") {
      %6: f32[16] "early" = gelu(%2) {approximate="tanh"}
      %7: f32[16] "sum" = accumulate(%6, %5) {accumulate="carried"}
      %8: f32[16] "late" = allocate() {dims="16", dtype="f32"}
      yield %7
    }
  })");
  // Slots: 0 allocate, 1 allocate, 2 begin, 3 gelu, 4 accumulate, 5 allocate, 6 end.
  EXPECT_EQ(lives.life("outer"), (Life{0, 7}));
  EXPECT_NE(lives.storage("early"), lives.storage("outer"));
  EXPECT_EQ(lives.life("early"), (Life{3, 5}));
  EXPECT_EQ(lives.life("late"), (Life{5, 6}));
}

TEST(Liveness, OuterValuesOfNestedLoopsLiveUntilTheOuterOneEnds) {
  const Lives lives(R"(program p {
    %2: f32[16] "outer" = allocate() {dims="16", dtype="f32"}
    %3: f32[16] "start" = allocate() {dims="16", dtype="f32"}
    %4: f32[16] "end" = loop(%3) {trips="n"} (%5: f32[16] "param") {
      %6: f32[16] "between" = allocate() {dims="16", dtype="f32"}
      %7: f32[16] "inner" = loop(%5) {trips="m"} (%8: f32[16] "deep") {
        %9: f32[16] "sum" = add(%2, %6)
        %10: f32[16] "total" = accumulate(%9, %8) {accumulate="always"}
        yield %10
      }
      yield %7
    }
  })");
  // Slots: 0, 1 allocate, 2 begin, 3 allocate, 4 begin, 5 add, 6 accumulate, 7 end, 8 end.
  EXPECT_EQ(lives.life("outer"), (Life{0, 9}));
  EXPECT_EQ(lives.life("between"), (Life{3, 8}));
  EXPECT_EQ(lives.storage("total"), lives.storage("start"));
}

TEST(Liveness, ScratchLivesInItsSlotAlone) {
  const Lives lives(R"(program p {
    %2: f32[16] "a" = allocate() {dims="16", dtype="f32"}
    host_stage() {bytes=1000}
    %3: f32[16] "b" = gelu(%2) {approximate="tanh"}
  })");
  const Liveness& all = lives.liveness();
  ASSERT_EQ(all.scratch_of_slot.size(), 3u);
  EXPECT_EQ(all.scratch_of_slot[0], kNone);
  const StorageLife& scratch = all.storages.at(static_cast<size_t>(all.scratch_of_slot[1]));
  EXPECT_EQ(scratch.value, kNone);
  EXPECT_EQ(scratch.bytes, 1000);
  EXPECT_EQ((Life{scratch.lower, scratch.upper}), (Life{1, 2}));
  EXPECT_EQ(scratch.role, Role::workspace);
}

TEST(Liveness, BuffersFollowTheStorages) {
  const Lives lives(R"(program p {
    %2: f32[16] "a" = allocate() {dims="16", dtype="f32"}
    host_stage() {bytes=1000}
    %3: f32[16] "b" = add(%2, %0)
  })");
  const std::vector<Buffer> buffers = lives.liveness().buffers(Tier::device);
  ASSERT_EQ(buffers.size(), lives.liveness().storages.size());
  for (size_t i = 0; i < buffers.size(); ++i) {
    const StorageLife& life = lives.liveness().storages[i];
    EXPECT_EQ(buffers[i].size, life.bytes);
    EXPECT_EQ((Life{buffers[i].lower, buffers[i].upper}), (Life{life.lower, life.upper}));
  }
}

}  // namespace
}  // namespace headroom

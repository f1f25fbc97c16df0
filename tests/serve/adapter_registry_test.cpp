// Names and slots of adapters: slots in use are never overwritten, names are removed at once, folders are read again.
#include "serve/adapter_registry.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "serve/api_error.h"

namespace headroom {
namespace {

class Registry : public testing::Test {
 protected:
  std::vector<std::string> names() const {
    std::vector<std::string> out;
    for (const AdapterUse& adapter : registry.all()) out.push_back(adapter->name);
    return out;
  }
  int status_of_load(const std::string& name) {
    try {
      registry.load(name, "/" + name);
    } catch (const ApiError& error) {
      return error.status();
    }
    return 200;
  }

  std::vector<std::filesystem::path> slots{2};  // content of each slot
  std::string refused;                          // a folder that does not fit
  std::string cut;                              // one that fails half-way
  AdapterRegistry registry{2,
                           {[this](const std::filesystem::path& directory) {
                              if (directory == refused) throw Error(ErrorKind::format, "it is bad", "correct it");
                            },
                            [this](int64_t slot, const std::filesystem::path& directory) {
                              if (directory == refused) throw Error(ErrorKind::format, "it is bad", "correct it");
                              slots[static_cast<size_t>(slot)] = directory == cut ? "nonsense" : directory;
                              if (directory == cut) throw Error(ErrorKind::format, "it was cut", "correct it");
                            }}};
};

TEST_F(Registry, FindsWhatIsLoaded) {
  registry.load("b", "/b");
  registry.load("a", "/a");
  EXPECT_THAT(names(), testing::ElementsAre("a", "b"));
  const AdapterUse a = registry.find("a"), b = registry.find("b");
  EXPECT_EQ(slots[static_cast<size_t>(a->slot)], "/a");
  EXPECT_NE(a->slot, b->slot);
  EXPECT_NE(a->prefix, b->prefix);
  EXPECT_LT(std::max(a->prefix, b->prefix), -1);
  EXPECT_EQ(registry.find("c"), nullptr);
  EXPECT_EQ(status_of_load("c"), 503);
  EXPECT_EQ(sequence_adapter(a).slot, a->slot);
  EXPECT_EQ(sequence_adapter(nullptr).slot, -1);
}

TEST_F(Registry, ASlotIsTakenAgainOnceNobodyUsesIt) {
  registry.load("a", "/a");
  registry.load("b", "/b");
  AdapterUse running = registry.find("a");
  EXPECT_TRUE(registry.unload("a"));
  EXPECT_FALSE(registry.unload("a"));
  EXPECT_EQ(registry.find("a"), nullptr);
  EXPECT_EQ(status_of_load("c"), 503);
  const int32_t slot = running->slot;
  EXPECT_EQ(slots[static_cast<size_t>(slot)], "/a");
  running.reset();
  EXPECT_EQ(status_of_load("c"), 200);
  EXPECT_EQ(registry.find("c")->slot, slot);
}

TEST_F(Registry, WhatCannotBeReadIsNotThere) {
  refused = "/bad";
  EXPECT_THROW(registry.load("bad", "/bad"), Error);
  EXPECT_THAT(names(), testing::IsEmpty());
  EXPECT_EQ(status_of_load("a"), 200);
  EXPECT_EQ(status_of_load("b"), 200);
}

TEST_F(Registry, RunningSequencesGoOnWithWhatTheyBeganWith) {
  registry.load("a", "/a");
  const AdapterUse running = registry.find("a");
  registry.replace("a", "/new");
  const AdapterUse now = registry.find("a");
  EXPECT_NE(now->slot, running->slot);
  EXPECT_NE(now->prefix, running->prefix);
  EXPECT_EQ(slots[static_cast<size_t>(running->slot)], "/a");
  EXPECT_THAT(names(), testing::ElementsAre("a"));
  EXPECT_THROW(registry.replace("a", "/newer"), ApiError);
}

TEST_F(Registry, FoldersAreReadAgain) {
  registry.load("a", "/a");
  registry.load("b", "/b");
  const int32_t before = registry.find("a")->prefix;
  AdapterUse running = registry.find("b");
  EXPECT_THAT(registry.reload(), testing::IsEmpty());
  registry.ask_reload();
  EXPECT_THAT(registry.reload(), testing::ElementsAre("adapter a was read again"));
  EXPECT_NE(registry.find("a")->prefix, before);
  EXPECT_THAT(registry.reload(), testing::IsEmpty());  // b is in use, and no slot is free
  running.reset();
  EXPECT_THAT(registry.reload(), testing::ElementsAre("adapter b was read again"));
  EXPECT_THAT(registry.reload(), testing::IsEmpty());
}

TEST_F(Registry, WhatCannotBeReadAgainStays) {
  registry.load("a", "/a");
  registry.load("b", "/b");
  refused = "/a";
  cut = "/b";
  registry.ask_reload();
  const std::vector<std::string> lines = registry.reload();
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_THAT(lines[0], testing::AllOf(testing::HasSubstr("it is bad"), testing::HasSubstr("stays as it was")));
  EXPECT_THAT(lines[1], testing::HasSubstr("it is gone"));
  EXPECT_THAT(names(), testing::ElementsAre("a"));
  EXPECT_EQ(status_of_load("c"), 200);
}

}  // namespace
}  // namespace headroom

// When memory runs out, the program ends if its own code would not check, and libraries that check get the error.
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cerrno>
#include <cstdlib>

#include "library/other_library.h"
#include "oneapi/dnnl/dnnl.h"

namespace {

constexpr size_t kBeyond = size_t{1} << 49;  // more than a process's address space
constexpr const char* kMessage = "^error: out of memory\n  give a smaller --memory, or free memory\n$";

void* own_posix_memalign(size_t bytes) {
  void* memory = nullptr;
  return posix_memalign(&memory, 64, bytes) == 0 ? memory : nullptr;
}
void* own_mmap(size_t bytes, int more = 0) {
  return mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | more, -1, 0);
}

TEST(MemoryExhaustion, IsToldToOtherLibraries) {
  EXPECT_EQ(other_library_posix_memalign(64, kBeyond), ENOMEM);
  EXPECT_EQ(other_library_mmap(kBeyond), ENOMEM);
  EXPECT_EQ(other_library_posix_memalign(64, 1000), 0);
  EXPECT_EQ(other_library_posix_memalign(24, 1000), EINVAL);
  EXPECT_EQ(other_library_mmap(4096), 0);
}

TEST(MemoryExhaustion, EndsTheProgramWhereItAsksItself) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(own_posix_memalign(kBeyond), testing::ExitedWithCode(1), kMessage);
  EXPECT_EXIT(own_mmap(kBeyond), testing::ExitedWithCode(1), kMessage);
  EXPECT_EQ(own_mmap(kBeyond, MAP_POPULATE), MAP_FAILED) << "who asks for pages at once looks";
  std::free(own_posix_memalign(1000));
}

TEST(MemoryExhaustion, EndsTheProgramWhereOneDnnAsks) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto allocate = [] {
    const dnnl_dims_t dims{static_cast<dnnl_dim_t>(kBeyond / 4)};
    dnnl_engine_t engine = nullptr;
    dnnl_memory_desc_t description;
    dnnl_memory_t memory = nullptr;
    dnnl_engine_create(&engine, dnnl_cpu, 0);
    dnnl_memory_desc_init_by_tag(&description, 1, dims, dnnl_f32, dnnl_a);
    dnnl_memory_create(&memory, &description, engine, DNNL_MEMORY_ALLOCATE);
  };
  EXPECT_EXIT(allocate(), testing::ExitedWithCode(1), kMessage);
}

}  // namespace

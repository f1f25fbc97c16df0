#include "ops/cuda/library.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>

#include "ops/cuda/cudnn.h"

namespace headroom::cuda {
namespace {

namespace fs = std::filesystem;

// A virtual environment with NVIDIA's folder of one package; active while this object lives.
class Environment {
 public:
  Environment() {
    fs::create_directories(libraries());
    ::setenv("VIRTUAL_ENV", root_.c_str(), 1);
  }
  ~Environment() {
    ::unsetenv("VIRTUAL_ENV");
    fs::remove_all(root_);
  }
  fs::path libraries() const { return root_ / "lib/python3.11/site-packages/nvidia/cudnn/lib"; }

 private:
  fs::path root_ = fs::temp_directory_path() / ("headroom-libraries-" + std::to_string(::getpid()));
};

TEST(CudaLibrary, FoldersOfTheActiveEnvironmentAreSearched) {
  const Environment environment;
  const std::vector<fs::path> folders = library_folders();
  EXPECT_NE(std::find(folders.begin(), folders.end(), environment.libraries()), folders.end());
  for (const fs::path& folder : folders) EXPECT_TRUE(fs::is_directory(folder)) << folder;
}

TEST(CudaLibrary, OneThatTheLoaderDoesNotKnowIsOpenedFromThere) {
  const Environment environment;
  const char* const names[] = {"libheadroom-of-nobody.so.1"};
  std::string reason;
  EXPECT_EQ(open_library(names, reason), nullptr);
  EXPECT_NE(reason.find("libheadroom-of-nobody.so.1"), std::string::npos) << reason;

  fs::copy_file(HEADROOM_TEST_LIBRARY, environment.libraries() / names[0]);
  void* const library = open_library(names, reason);
  ASSERT_NE(library, nullptr) << reason;
  void* function = nullptr;
  EXPECT_TRUE(find_function(library, "headroom_small_library", &function, reason)) << reason;
  EXPECT_FALSE(find_function(library, "headroom_of_nobody", &function, reason));
}

TEST(CudaLibrary, TheEnvironmentLeavesThemOut) {
  ::setenv("HEADROOM_CUDA_WITHOUT", "cudnn,cublaslt", 1);
  EXPECT_FALSE(library_wanted("libcudnn.so.9"));
  EXPECT_FALSE(library_wanted("libcublasLt.so.13"));
  EXPECT_TRUE(library_wanted("libcublas.so.13"));
  const char* const names[] = {"libcudnn.so.9"};
  std::string reason;
  EXPECT_EQ(open_library(names, reason), nullptr);
  EXPECT_EQ(reason, "left out by HEADROOM_CUDA_WITHOUT");
  ::unsetenv("HEADROOM_CUDA_WITHOUT");
  EXPECT_TRUE(library_wanted("libcudnn.so.9"));
}

TEST(CudaLibrary, OneThatCannotBeOpenedIsNamedWithTheReason) {
  const Environment environment;
  const char* const names[] = {"libheadroom-broken.so.1"};
  std::ofstream(environment.libraries() / names[0]) << "no library\n";
  std::string reason;
  EXPECT_EQ(open_library(names, reason), nullptr);
  EXPECT_NE(reason.find(environment.libraries().string()), std::string::npos) << reason;
}

TEST(CudaLibrary, AnOldOneThatTakesNoGradientIsNamed) {
  EXPECT_EQ(cudnn_gradient_remark(91900, 90, true),
            "attention's gradient by our own kernels: cuDNN 9.19.0 is older than 9.25.0");
  EXPECT_EQ(cudnn_gradient_remark(92500, 90, true), "");
  EXPECT_EQ(cudnn_gradient_remark(91900, 90, false), "") << "no gradient in a fixed order is wanted";
  for (int other : {80, 86, 89, 100, 120})
    EXPECT_EQ(cudnn_gradient_remark(91900, other, true), "") << "none takes it there";
}

}  // namespace
}  // namespace headroom::cuda

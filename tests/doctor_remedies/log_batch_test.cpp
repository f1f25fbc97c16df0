// What people write about the batch, in texts written for the tests.
#include "doctor/remedies/log_batch.h"

#include <gtest/gtest.h>

namespace headroom::doctor {
namespace {

TEST(LogBatch, IsOneWhereEveryStatedSizeIs) {
  for (const char* log : {"even with batch size of 1\n", "batch_size=1, image 224\n", "batchsize = 1\n",
                          "i have set the batch size to 1 and it fails\n", "--batch-size 1 --img 224\n",
                          "batch size已经调成1了\n", "per_device_train_batch_size: 1\nper_device_eval_batch_size: 8\n"})
    EXPECT_TRUE(batch_of_one(log)) << log;
  for (const char* log :
       {"batch size of 16\n", "batch_size=1 works, batch_size=4 does not\n", "batch 1/4000\n", "eval_batch_size=1\n",
        "the batch size and 1 gpu\n", "batch_size=128\n", "", "batch size\n1 epoch\n"})
    EXPECT_FALSE(batch_of_one(log)) << log;
}

TEST(LogBatch, OthersReplyAndProposeAndSomeBatchesGoWell) {
  for (const char* log : {"it runs out of memory\n> have you tried batch_size=1\n", "batch_size: 8\ntry batch_size=1\n",
                          "you can set the batch size to 1\n", "should i set batch_size=1?\n",
                          "out of memory\nann commented on may 3\n"
                          "with batch_size=1 it still fails\n",
                          "batch_size=1 works fine\n", "可以把batch_size设为1\n"}) {
    EXPECT_FALSE(batch_of_one(log)) << log;
    EXPECT_FALSE(smallest_batch_failed(log)) << log;
  }
  EXPECT_FALSE(smaller_batch_failed("out of memory\n> i reduced the batch size but got the same error\n"));
  EXPECT_TRUE(batch_of_one("out of memory\n> file \"train.py\", line 3\n> batch_size=1\n"));
  EXPECT_TRUE(batch_of_one("try lr=1e-4\n--batch-size 1\n"));
  EXPECT_TRUE(smallest_batch_failed("i try batch_size=1 as you suggested, still oom\n"));
}

TEST(LogBatch, ASmallerOneMayHaveBeenTried) {
  EXPECT_TRUE(smaller_batch_failed("i tried to reduce the batch size but i got the same problem.\n"));
  EXPECT_TRUE(smaller_batch_failed("decreasing the batch size doesn't help\n"));
  EXPECT_TRUE(smaller_batch_failed("batch size 8\nlowering the batch size has no effect\n"));
  EXPECT_TRUE(smaller_batch_failed("已经调的非常小了\n--train_batch_size=2\n依旧oom\n"));
  EXPECT_TRUE(smaller_batch_failed("i change the batch size to 16, the same problem arises at epoch 258\n"));
  EXPECT_TRUE(smaller_batch_failed("就算batch_size设置成1也是报错\n"));
  EXPECT_TRUE(smaller_batch_failed("it is not the batch size that is the problem\n"));
  EXPECT_TRUE(smaller_batch_failed("バッチサイズを2に下げても解決しない\n"));
  EXPECT_FALSE(smaller_batch_failed("writer_batch_size is lowered to 10, still killed\n"));
  EXPECT_FALSE(smaller_batch_failed("should i reduce the batch size?\n"));
  EXPECT_FALSE(smaller_batch_failed("reduce the learning rate\nbatch size 8 but only 2 gpus\n"));
}

TEST(LogBatch, TheSmallestMayHaveFailed) {
  EXPECT_TRUE(smallest_batch_failed("from batch size 12 down to 2, still oom\n"));
  EXPECT_TRUE(smallest_batch_failed("batch_size从10一路降到2,依然爆显存\n"));
  EXPECT_TRUE(smallest_batch_failed("no matter which batch size i take, it is oom\n"));
  EXPECT_FALSE(smallest_batch_failed("i reduced the batch size from 64 to 32, still oom\n"));
}

}  // namespace
}  // namespace headroom::doctor

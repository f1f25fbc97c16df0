// Whose words a log holds, in texts written for the tests.
#include "doctor/remedies/own_words.h"

#include <gtest/gtest.h>

namespace headroom::doctor {
namespace {

TEST(OwnWords, AQuotedReplyIsAnothersText) {
  EXPECT_EQ(without_replies("it fails\n> a smaller batch may do\n> or two\nno\n"), "it fails\nno\n");
  const char* output = "it fails\n> traceback (most recent call last):\n> batch_size=1\n";
  EXPECT_EQ(without_replies(output), output);
  const char* command = "> python train.py --batch-size 1\n";
  EXPECT_EQ(without_replies(command), command);
}

TEST(OwnWords, BelowThePostOthersSpeak) {
  EXPECT_EQ(without_replies("it fails\nann commented on may 3\nbatch 1 then\n"), "it fails\n");
  EXPECT_EQ(without_replies("eve · description · 2023-05-03\nit fails\nann · comment · 2023-05-03\nbatch 1 then\n"
                            "eve · comment · 2023-05-04\nbatch 2 fails\n"),
            "it fails\nbatch 2 fails\n");
  EXPECT_EQ(without_replies("it fails\non mon, 3 may 2021 at 10:00, ann <a@b.c> wrote:\nbatch 1 then\n"), "it fails\n");
  const char* sentence = "what the team commented on the batch\n";
  EXPECT_EQ(without_replies(sentence), sentence);
}

TEST(OwnWords, AProposalIsNotDone) {
  for (const char* sentence :
       {"try batch_size=1", "you can set the batch size to 1", "have you tried a batch of 1?",
        "please try batch size 1", "should i set the batch size to 1?", "set the batch size to 1",
        "可以把batch_size设为1", "建议把batch改成1", "バッチサイズを1にしてみてください", "i suggest batch_size=1"})
    EXPECT_TRUE(proposes(sentence)) << sentence;
  for (const char* sentence :
       {"i tried batch_size=1", "batch_size=1, image 224", "even with batch size of 1",
        "set the batch size to 1, still oom", "as you can see the batch size is 1", "batch size已经调成1了",
        "please help, the batch size is 1", "バッチサイズを1に下げても解決しない"})
    EXPECT_FALSE(proposes(sentence)) << sentence;
}

}  // namespace
}  // namespace headroom::doctor

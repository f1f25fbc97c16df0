// What a post compares: a smaller model with a larger one, an older version with a newer one; and growth that it tells
// of or only supposes.
#include "doctor/remedies/told_growth.h"
#include "incidents.h"

namespace headroom::doctor {
namespace {

using testing::HasSubstr;

Diagnosis of_words(const std::string& log, const std::string& format = "torch_no_numbers") {
  Case incident;
  Message message;
  message.framework = "pytorch-cuda";
  message.format = format;
  message.phase = "unknown";
  incident.messages.push_back(message);
  incident.log_text = log;
  return diagnose(incident);
}

TEST(Compared, AnOlderVersionThatHelpedIsGoneBackTo) {
  for (const char* log :
       {"cuda out of memory since 2.3. downgrading to 2.2 fixes it\n",
        "cuda out of memory in version 1.8 (reverted to 1.7 and it works)\n", "显存不足, 回退到旧版就正常了\n"})
    EXPECT_EQ(of_words(log).remedies[0].name, "other-version") << log;
  for (const char* log :
       {"cuda out of memory, downgrading to 2.2 does not help\n",
        "cuda out of memory\nyou can downgrade to 2.2, it works\n", "cuda out of memory. would downgrading work?\n",
        "cuda out of memory\n> downgrading to 2.2 fixed it for me\n"})
    EXPECT_EQ(cause_of(of_words(log), "worked_before_an_upgrade"), nullptr) << log;
}

}  // namespace
}  // namespace headroom::doctor

/* A stand-in for libnvidia-ml.so.1: answers the NVML calls that the agent makes from a text file.
 *
 * The file, named by NVML_STATE, is read anew when another has taken its place, so a test changes the machine
 * while it runs. One rule a line, later lines win, `*` stands for every GPU or every call:
 *
 *     gpu   ADDRESS UUID SERIAL NAME...     a GPU, in the order of NVML's indexes
 *     text  - CALL VALUE                    what a call that answers a text says
 *     value ADDRESS CALL NUMBER             what a call about a GPU answers
 *     field ADDRESS ID[/SCOPE] NUMBER       the value of a field
 *     nofield ADDRESS ID[/SCOPE] CODE       the return code of a field
 *     error ADDRESS CALL CODE               the return code of a call
 *     hang  ADDRESS CALL                    the call does not return
 *     slow  ADDRESS CALL MILLISECONDS       the call takes so long
 *
 * What no rule names is "not supported". Layouts follow the public NVML header, API version 13.
 */
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { SUCCESS = 0, UNINITIALIZED = 1, INVALID_ARGUMENT = 2, NOT_SUPPORTED = 3, NOT_FOUND = 6, MISMATCH = 25 };
enum { MAX_GPUS = 16, UNSIGNED_LONG_LONG = 3, SIGNED_INT = 5 }; /* types of a field's value */

typedef int ret;
struct gpu { int known; char address[32], uuid[96], serial[32], name[96]; };
typedef struct gpu *device;

static struct gpu seen[MAX_GPUS]; /* handles: they outlive a change of the indexes, as NVML's do */
static int initialised;

struct rule { char kind[12], where[40], call[64], rest[128]; };

typedef int visit(const struct rule *rule, void *context);

enum { MAX_RULES = 1024 };
static struct rule rules[MAX_RULES];
static int rule_count;
static struct stat read_of; /* the file that the rules are from */

static void read_rules(void)
{
    const char *path = getenv("NVML_STATE");
    struct stat now = {0};
    char line[512];
    if (path && !stat(path, &now) && now.st_ino == read_of.st_ino && now.st_size == read_of.st_size &&
        now.st_mtim.tv_sec == read_of.st_mtim.tv_sec && now.st_mtim.tv_nsec == read_of.st_mtim.tv_nsec)
        return;
    FILE *file = path ? fopen(path, "r") : NULL;
    rule_count = 0;
    read_of = now;
    while (file && rule_count < MAX_RULES && fgets(line, sizeof line, file)) {
        struct rule *rule = &rules[rule_count];
        memset(rule, 0, sizeof *rule);
        if (sscanf(line, "%11s %39s %63s %127[^\n]", rule->kind, rule->where, rule->call, rule->rest) >= 2)
            rule_count++;
    }
    if (file)
        fclose(file);
}

static void each_rule(visit *see, void *context)
{
    read_rules();
    for (int each = 0; each < rule_count; each++)
        see(&rules[each], context);
}

struct query { const char *kind, *where, *call; int found; char answer[128]; };

static int match(const struct rule *rule, void *context)
{
    struct query *query = context;
    if (strcmp(rule->kind, query->kind))
        return 0;
    if (strcmp(rule->where, "*") && strcmp(rule->where, query->where))
        return 0;
    if (strcmp(rule->call, "*") && strcmp(rule->call, query->call))
        return 0;
    query->found = 1;
    strcpy(query->answer, rule->rest);
    return 0;
}

static int ask(const char *kind, const char *where, const char *call, char *answer)
{
    struct query query = {kind, where, call, 0, {0}};
    each_rule(match, &query);
    if (answer)
        strcpy(answer, query.answer);
    return query.found;
}

/* What every call does first: hang, wait, fail, or go on. */
static ret begin(const char *where, const char *call)
{
    char code[128];
    while (ask("hang", where, call, NULL))
        pause();
    if (ask("slow", where, call, code))
        poll(NULL, 0, atoi(code));
    if (ask("error", where, call, code))
        return atoi(code);
    return SUCCESS;
}

static ret enter(const char *where, const char *call)
{
    ret code = begin(where, call);
    return code || initialised ? code : UNINITIALIZED;
}

static ret number(device gpu, const char *call, long long *value)
{
    char answer[128];
    ret code = enter(gpu->address, call);
    if (code)
        return code;
    if (!ask("value", gpu->address, call, answer))
        return NOT_SUPPORTED;
    *value = strtoll(answer, NULL, 0);
    return SUCCESS;
}

static ret small(device gpu, const char *call, unsigned int *value)
{
    long long found = 0;
    ret code = number(gpu, call, &found);
    if (!code)
        *value = (unsigned int)found;
    return code;
}

static ret text(const char *call, char *buffer, unsigned int length)
{
    ret code = enter("-", call);
    char answer[128] = "";
    if (code)
        return code;
    if (!ask("text", "-", call, answer))
        return NOT_SUPPORTED;
    snprintf(buffer, length, "%s", answer);
    return SUCCESS;
}

static int collect(const struct rule *rule, void *context)
{
    int *count = context;
    if (!strcmp(rule->kind, "gpu") && *count < MAX_GPUS) {
        struct gpu *slot = seen;
        while (slot->known && strcmp(slot->address, rule->where))
            slot++;
        slot->known = 1;
        strcpy(slot->address, rule->where);
        strcpy(slot->uuid, rule->call);
        sscanf(rule->rest, "%31s %95[^\n]", slot->serial, slot->name);
        ++*count;
    }
    return 0;
}

struct place { int index, wanted; char address[32]; };

static int locate(const struct rule *rule, void *context)
{
    struct place *place = context;
    if (!strcmp(rule->kind, "gpu") && place->index++ == place->wanted)
        strcpy(place->address, rule->where);
    return 0;
}

static device find(const char *address)
{
    int count = 0;
    each_rule(collect, &count);
    for (struct gpu *slot = seen; slot < seen + MAX_GPUS; slot++)
        if (slot->known && !strcmp(slot->address, address))
            return slot;
    return NULL;
}

/* ---- library */

ret nvmlInitWithFlags(unsigned int flags)
{
    ret code = begin("-", "nvmlInitWithFlags");
    (void)flags;
    initialised = !code;
    return code;
}

ret nvmlShutdown(void)
{
    initialised = 0;
    return SUCCESS;
}

const char *nvmlErrorString(ret code)
{
    static char said[32];
    snprintf(said, sizeof said, "code %d", code);
    return said;
}

ret nvmlSystemGetDriverVersion(char *buffer, unsigned int length)
{
    return text("nvmlSystemGetDriverVersion", buffer, length);
}

ret nvmlSystemGetNVMLVersion(char *buffer, unsigned int length)
{
    return text("nvmlSystemGetNVMLVersion", buffer, length);
}

ret nvmlDeviceGetCount_v2(unsigned int *count)
{
    int found = 0;
    ret code = enter("-", "nvmlDeviceGetCount_v2");
    if (!code) {
        each_rule(collect, &found);
        *count = (unsigned int)found;
    }
    return code;
}

ret nvmlDeviceGetHandleByIndex_v2(unsigned int index, device *gpu)
{
    struct place place = {0, (int)index, {0}};
    each_rule(locate, &place);
    *gpu = find(place.address);
    return *gpu ? enter((*gpu)->address, "nvmlDeviceGetHandleByIndex_v2") : INVALID_ARGUMENT;
}

ret nvmlDeviceGetHandleByPciBusId_v2(const char *bus_id, device *gpu)
{
    *gpu = find(bus_id);
    return *gpu ? enter((*gpu)->address, "nvmlDeviceGetHandleByPciBusId_v2") : NOT_FOUND;
}

/* ---- one GPU: what it is */

struct pci_info {
    char legacy[16];
    unsigned int domain, bus, device, device_id, subsystem_id;
    char bus_id[32];
};

ret nvmlDeviceGetPciInfo_v3(device gpu, struct pci_info *info)
{
    ret code = enter(gpu->address, "nvmlDeviceGetPciInfo_v3");
    if (code)
        return code;
    memset(info, 0, sizeof *info);
    sscanf(gpu->address, "%x:%x:%x", &info->domain, &info->bus, &info->device);
    snprintf(info->bus_id, sizeof info->bus_id, "%08X:%02X:%02X.0", info->domain, info->bus, info->device);
    snprintf(info->legacy, sizeof info->legacy, "%04X:%02X:%02X.0", info->domain & 0xffff, info->bus & 0xff,
             info->device & 0xff);
    return SUCCESS;
}

#define TEXT_OF_GPU(CALL, MEMBER)                                                                            \
    ret CALL(device gpu, char *buffer, unsigned int length)                                                  \
    {                                                                                                        \
        ret code = enter(gpu->address, #CALL);                                                               \
        if (!code)                                                                                           \
            snprintf(buffer, length, "%s", gpu->MEMBER);                                                     \
        return code;                                                                                         \
    }

TEXT_OF_GPU(nvmlDeviceGetUUID, uuid)
TEXT_OF_GPU(nvmlDeviceGetSerial, serial)
TEXT_OF_GPU(nvmlDeviceGetName, name)

/* ---- one GPU: how it is */

struct field {
    uint32_t id, scope;
    int64_t timestamp, latency;
    unsigned int type, code;
    union { double real; unsigned int small; unsigned long long large; int negative; } value;
};

static void fill(device gpu, struct field *field)
{
    char name[64], answer[128];
    snprintf(name, sizeof name, field->scope ? "%u/%u" : "%u", field->id, field->scope);
    if (ask("nofield", gpu->address, name, answer)) {
        field->code = (unsigned int)atoi(answer);
    } else if (ask("field", gpu->address, name, answer)) {
        long long value = strtoll(answer, NULL, 0);
        field->code = SUCCESS;
        field->type = value < 0 ? SIGNED_INT : UNSIGNED_LONG_LONG;
        if (value < 0)
            field->value.negative = (int)value;
        else
            field->value.large = (unsigned long long)value;
    } else {
        field->code = NOT_SUPPORTED;
    }
}

ret nvmlDeviceGetFieldValues(device gpu, int count, struct field *fields)
{
    ret code = enter(gpu->address, "nvmlDeviceGetFieldValues");
    for (int each = 0; !code && each < count; each++)
        fill(gpu, &fields[each]);
    return code;
}

#define NUMBER_OF_GPU(CALL)                                                                                  \
    ret CALL(device gpu, unsigned int *value) { return small(gpu, #CALL, value); }

NUMBER_OF_GPU(nvmlDeviceGetPersistenceMode)
NUMBER_OF_GPU(nvmlDeviceGetEnforcedPowerLimit)

#define MASK_OF_GPU(CALL)                                                                                    \
    ret CALL(device gpu, unsigned long long *value) { return number(gpu, #CALL, (long long *)value); }

MASK_OF_GPU(nvmlDeviceGetCurrentClocksEventReasons)
MASK_OF_GPU(nvmlDeviceGetCurrentClocksThrottleReasons)

ret nvmlDeviceValidateInforom(device gpu)
{
    return enter(gpu->address, "nvmlDeviceValidateInforom");
}

ret nvmlDeviceGetMigMode(device gpu, unsigned int *current, unsigned int *pending)
{
    *pending = 0;
    return small(gpu, "nvmlDeviceGetMigMode", current);
}

ret nvmlDeviceGetNvLinkState(device gpu, unsigned int link, unsigned int *active)
{
    unsigned int links = 0;
    ret code = small(gpu, "nvmlDeviceGetNvLinkState", &links);
    *active = link < 32 && (links >> link) & 1;
    return code;
}

struct margin { unsigned int version; int margin; };

ret nvmlDeviceGetMarginTemperature(device gpu, struct margin *margin)
{
    long long value = 0;
    ret code = number(gpu, "nvmlDeviceGetMarginTemperature", &value);
    margin->margin = (int)value;
    return code;
}

enum { MEMORY_V2 = 0x02000028 };

struct memory {
    unsigned int version;
    unsigned long long total, reserved, free, used;
};

ret nvmlDeviceGetMemoryInfo_v2(device gpu, struct memory *memory)
{
    long long used = 0;
    ret code = number(gpu, "nvmlDeviceGetMemoryInfo_v2", &used);
    if (!code && memory->version != MEMORY_V2)
        code = MISMATCH;
    if (!code) {
        memory->total = 80ull << 30;
        memory->reserved = 600ull << 20;
        memory->used = (unsigned long long)used;
        memory->free = memory->total - memory->reserved - memory->used;
    }
    return code;
}

struct sram {
    unsigned int version;
    unsigned long long counts[11];
    unsigned int exceeded;
};

ret nvmlDeviceGetSramEccErrorStatus(device gpu, struct sram *status)
{
    return small(gpu, "nvmlDeviceGetSramEccErrorStatus", &status->exceeded);
}

struct fabric {
    unsigned int version;
    unsigned char cluster[16];
    unsigned int status, clique, state, health;
    unsigned char summary;
};

/* The value is STATE + 16 * STATUS + 4096 * CLIQUE. nvmlGpuFabricInfoVersion is the newest layout that the library knows. */
ret nvmlDeviceGetGpuFabricInfoV(device gpu, struct fabric *fabric)
{
    unsigned int packed = 0;
    char newest[128];
    ret code = small(gpu, "nvmlDeviceGetGpuFabricInfoV", &packed);
    if (!code && ask("value", "-", "nvmlGpuFabricInfoVersion", newest) && (int)(fabric->version >> 24) > atoi(newest))
        code = MISMATCH;
    if (!code) {
        fabric->state = packed & 15;
        fabric->status = packed >> 4 & 255;
        fabric->clique = packed >> 12;
    }
    return code;
}

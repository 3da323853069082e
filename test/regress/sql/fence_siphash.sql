-- SipHash-2-4 with 128-bit output: the reference implementation's vectors, key 00..0f and data of length 0 to 63, 00 01 02 ...
CREATE TEMP TABLE vector (len int GENERATED ALWAYS AS IDENTITY (MINVALUE 0 START 0), expected bytea);
INSERT INTO vector (expected) VALUES
  ('\xa3817f04ba25a8e66df67214c7550293'), ('\xda87c1d86b99af44347659119b22fc45'),
  ('\x8177228da4a45dc7fca38bdef60affe4'), ('\x9c70b60c5267a94e5f33b6b02985ed51'),
  ('\xf88164c12d9c8faf7d0f6e7c7bcd5579'), ('\x1368875980776f8854527a07690e9627'),
  ('\x14eeca338b208613485ea0308fd7a15e'), ('\xa1f1ebbed8dbc153c0b84aa61ff08239'),
  ('\x3b62a9ba6258f5610f83e264f31497b4'), ('\x264499060ad9baabc47f8b02bb6d71ed'),
  ('\x00110dc378146956c95447d3f3d0fbba'), ('\x0151c568386b6677a2b4dc6f81e5dc18'),
  ('\xd626b266905ef35882634df68532c125'), ('\x9869e247e9c08b10d029934fc4b952f7'),
  ('\x31fcefac66d7de9c7ec7485fe4494902'), ('\x5493e99933b0a8117e08ec0f97cfc3d9'),
  ('\x6ee2a4ca67b054bbfd3315bf85230577'), ('\x473d06e8738db89854c066c47ae47740'),
  ('\xa426e5e423bf4885294da481feaef723'), ('\x78017731cf65fab074d5208952512eb1'),
  ('\x9e25fc833f2290733e9344a5e83839eb'), ('\x568e495abe525a218a2214cd3e071d12'),
  ('\x4a29b54552d16b9a469c10528eff0aae'), ('\xc9d184ddd5a9f5e0cf8ce29a9abf691c'),
  ('\x2db479ae78bd50d8882a8a178a6132ad'), ('\x8ece5f042d5e447b5051b9eacb8d8f6f'),
  ('\x9c0b53b4b3c307e87eaee08678141f66'), ('\xabf248af69a6eae4bfd3eb2f129eeb94'),
  ('\x0664da1668574b88b935f3027358aef4'), ('\xaa4b9dc4bf337de90cd4fd3c467c6ab7'),
  ('\xea5c7f471faf6bde2b1ad7d4686d2287'), ('\x2939b0183223fafc1723de4f52c43d35'),
  ('\x7c3956ca5eeafc3e363e9d556546eb68'), ('\x77c6077146f01c32b6b69d5f4ea9ffcf'),
  ('\x37a6986cb8847edf0925f0f1309b54de'), ('\xa705f0e69da9a8f907241a2e923c8cc8'),
  ('\x3dc47d1f29c448461e9e76ed904f6711'), ('\x0d62bf01e6fc0e1a0d3c4751c5d3692b'),
  ('\x8c03468bca7c669ee4fd5e084bbee7b5'), ('\x528a5bb93baf2c9c4473cce5d0d22bd9'),
  ('\xdf6a301e95c95dad97ae0cc8c6913bd8'), ('\x801189902c857f39e73591285e70b6db'),
  ('\xe617346ac9c231bb3650ae34ccca0c5b'), ('\x27d93437efb721aa401821dcec5adf89'),
  ('\x89237d9ded9c5e78d8b1c9b166cc7342'), ('\x4a6d8091bf5e7d651189fa94a250b14c'),
  ('\x0e33f96055e7ae893ffc0e3dcf492902'), ('\xe61c432b720b19d18ec8d84bdc63151b'),
  ('\xf7e5aef549f782cf379055a608269b16'), ('\x438d030fd0b7a54fa837f2ad201a6403'),
  ('\xa590d3ee4fbf04e3247e0d27f286423f'), ('\x5fe2c1a172fe93c4b15cd37caef9f538'),
  ('\x2c97325cbd06b36eb2133dd08b3a017c'), ('\x92c814227a6bca949ff0659f002ad39e'),
  ('\xdce850110bd8328cfbd50841d6911d87'), ('\x67f14984c7da791248e32bb5922583da'),
  ('\x1938f2cf72d54ee97e94166fa91d2a36'), ('\x74481e9646ed49fe0f6224301604698e'),
  ('\x57fca5de98a9d6d8006438d0583d8a1d'), ('\x9fecde1cefdc1cbed4763674d9575359'),
  ('\xe3040c00eb28f15366ca73cbd872e740'), ('\x7697009a6a831dfecca91c5993670f7a'),
  ('\x5853542321f567a005d547a4f04759bd'), ('\x5150d1772f50834a503e069a973fbd7c');
SELECT count(*), count(*) FILTER (WHERE expected = synchro._siphash('\x000102030405060708090a0b0c0d0e0f', data)) AS right
  FROM vector, LATERAL (SELECT coalesce(string_agg(substr(int4send(i), 4), '' ORDER BY i), '') AS data FROM generate_series(0, len - 1) i) d;
SELECT synchro._siphash('\x00', '');
SELECT count(DISTINCT synchro._new_version()), bool_and(synchro._new_version() ~ '^[A-Za-z0-9_-]{16}$') FROM generate_series(1, 10000);

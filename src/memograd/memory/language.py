"""Which language a text is in, and about how many tokens it costs.

Both look at characters only, so they need no model. Invariant: a Chinese sentence stays Chinese
when it names brands or people in Latin letters, and an English one stays English when it quotes a
Chinese word. Standard library only.
"""

from __future__ import annotations

import re
from typing import Final, Literal

Language = Literal["en", "zh"]

_TRADITIONAL: Final = (
    "萬與業丟個為爲麼義習雲產親僅從們價會傷體妳單儲兒關興養內決幾劃剛別辦務動勵勞區卻厲發號後"
    "嗎聽啟園圍國圖壞備復頭媽學寧實對將盡師帳帶幫幹應庫廢開張當錄憶憂懷總戀驚願戶掛換據損擺數"
    "無舊時顯術機權條來樣檔夢檢歡毀氣漢沒淚瀏溫煩愛環現電碼確離種稱穩筆簡類緊經終結給統繼紹續"
    "羅羨職聯腦臉藝節薦雖補裝見規視覽覺計認討讓議記講許論設證識訴詞譯試話該語說説請誰諒談謝財"
    "賬質購貴資讚贊趕輛輕軟較邊過還這進遠連選遺郵裡裏釋鐘鑰錢銷鎖錯長門問間鬧聞陣隨難險靜頁順"
    "須顧頻題饋馬駕驗點歷擇護擔擁狀獨療盤刪歲寶貓魚鳥鴨雞飯飲館餅藥醫銀鐵車飛場東廣灣臺蘇陳劉"
    "楊趙黃吳孫鄭馮蕭鄧葉盧譚賈韋薩熱涼蘭綠紅藍雙兩隊團組級畢課書報紙畫樂戲劇鋼遊戰賽運轉遷樓"
    "層寫讀訂買賣費賺貸稅債約孃爺嬸侶偵僑優傳傾減準滿災營爐牆獎獸癢監禮窮競糧絲綜網緒線練織繪"
    "罰聲腫腸膚膽舉處蟲衝製變豐貝負貧責賓賴贈跡蹟輸辭農違適達遲鄰鄉釣鈔鍛鍵鏡閉閱陽陰際雜霧顏"
    "額顆飄騎騙髒鬆鹹麥齡齒龍龜"
    "週億縣鎮繫衛廳臥鮮麵豬蝦員廠髮腳蓋風燒劑測絡傑樹橋塊隻萊瑪維納襪褲頸鬍鵝燈爾獅礎積範簽糾"
    "紐純紗紋細絕綁縮績腎臨莊華蔣薑蘋蠟複託訊隱尋導嶺幣彎態慣慶懶擠攝斷暈暫樁歐殘潔濕灑煙牽犧"
    "甦疊瘋癥皺睏矯碩禍禿穌竊筍箏籃糞紮絨綵綿緣縫繞繩翹聾脹膠艦蔥蘿蝸襯觸訪評詢詳誌誤謀豎貼賭"
    "踐躍軌軍輪輯轎遙釀釦釘鈴鉤銅銳鋁鍊鍋鑽閑閣闆陸靈韓頂項預頓頗領頰頹颱飼餓駛騰驢驟鬥鮑鯉鯊"
    "鱉鴿鶴鷹麗黨齊"
)
_SIMPLIFIED: Final = (
    "万与业丢个为为么义习云产亲仅从们价会伤体你单储儿关兴养内决几划刚别办务动励劳区却厉发号后"
    "吗听启园围国图坏备复头妈学宁实对将尽师帐带帮干应库废开张当录忆忧怀总恋惊愿户挂换据损摆数"
    "无旧时显术机权条来样档梦检欢毁气汉没泪浏温烦爱环现电码确离种称稳笔简类紧经终结给统继绍续"
    "罗羡职联脑脸艺节荐虽补装见规视览觉计认讨让议记讲许论设证识诉词译试话该语说说请谁谅谈谢财"
    "账质购贵资赞赞赶辆轻软较边过还这进远连选遗邮里里释钟钥钱销锁错长门问间闹闻阵随难险静页顺"
    "须顾频题馈马驾验点历择护担拥状独疗盘删岁宝猫鱼鸟鸭鸡饭饮馆饼药医银铁车飞场东广湾台苏陈刘"
    "杨赵黄吴孙郑冯萧邓叶卢谭贾韦萨热凉兰绿红蓝双两队团组级毕课书报纸画乐戏剧钢游战赛运转迁楼"
    "层写读订买卖费赚贷税债约娘爷婶侣侦侨优传倾减准满灾营炉墙奖兽痒监礼穷竞粮丝综网绪线练织绘"
    "罚声肿肠肤胆举处虫冲制变丰贝负贫责宾赖赠迹迹输辞农违适达迟邻乡钓钞锻键镜闭阅阳阴际杂雾颜"
    "额颗飘骑骗脏松咸麦龄齿龙龟"
    "周亿县镇系卫厅卧鲜面猪虾员厂发脚盖风烧剂测络杰树桥块只莱玛维纳袜裤颈胡鹅灯尔狮础积范签纠"
    "纽纯纱纹细绝绑缩绩肾临庄华蒋姜苹蜡复托讯隐寻导岭币弯态惯庆懒挤摄断晕暂桩欧残洁湿洒烟牵牺"
    "苏叠疯症皱困矫硕祸秃稣窃笋筝篮粪扎绒彩绵缘缝绕绳翘聋胀胶舰葱萝蜗衬触访评询详志误谋竖贴赌"
    "践跃轨军轮辑轿遥酿扣钉铃钩铜锐铝链锅钻闲阁板陆灵韩顶项预顿颇领颊颓台饲饿驶腾驴骤斗鲍鲤鲨"
    "鳖鸽鹤鹰丽党齐"
)
_TO_SIMPLIFIED: Final = str.maketrans(_TRADITIONAL, _SIMPLIFIED)
_CHINESE_CHARACTER = re.compile(r"[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]")
_LATIN_WORD = re.compile(r"[A-Za-zÀ-ɏ][A-Za-zÀ-ɏ'’-]*")


def language_of(text: str) -> Language:
    """`zh` if the text has at least as many Chinese characters as Latin words, else `en`."""
    chinese = len(_CHINESE_CHARACTER.findall(text))
    return "zh" if chinese and chinese >= len(_LATIN_WORD.findall(text)) else "en"


def is_chinese(text: str) -> bool:
    """Whether the text is Chinese, by `language_of`."""
    return language_of(text) == "zh"


def simplified(text: str) -> str:
    """The text with the usual traditional characters as simplified ones, each in its place.

    For comparing only: 電話 and 电话 are the same then. Rare characters stay as they are.
    """
    return text.translate(_TO_SIMPLIFIED)


def estimate_tokens(text: str) -> int:
    """About how many tokens a language model makes of the text: its UTF-8 bytes by 3, rounded up.

    English has some four bytes a token and Chinese three to five, so the estimate is rather too
    high than too low.
    """
    return -(-len(text.encode("utf-8", "surrogatepass")) // 3)

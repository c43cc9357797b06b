"""The glossary of search: Chinese, Japanese and Korean terms with the English words that skills use for them."""

__all__ = ["GLOSSARY", "VARIANTS"]

GLOSSARY = """
a/b test, ab testing, experiment: 对照实验 에이비테스트
abstract, summary: 抽象 摘要 抄録 초록
academic: 学术 学会 학술 학계
academic writing: 论文写作 論文執筆 논문작성
acceptance criteria: 验收标准 验收条件 驗收 受け入れ基準 受入条件 인수조건 인수기준
access control: 访问控制 存取控制 アクセス制御 アクセス管理 접근제어 접근통제
access permission: 权限 アクセス権 권한
accessibility: 无障碍 アクセシビリティ 접근성
account: 账号 账户 アカウント 계정
accounting: 会计 経理 회계
accounts payable: 应付账款 買掛金 매입채무
accounts receivable: 应收账款 売掛金 매출채권 미수금
acquisition, merger: 收购 并购 買収 合併 인수합병
activity: 活动记录 アクティビティ 활동
ad hoc, temporary: 临时 一時的 임시
adapter: 适配器 転接 アダプター 어댑터
add: 添加 新增 追加 추가
add, insert: 增加 插入 加上 付け加え 더하기 삽입
address: 地址 住所 アドレス 주소
adjust: 调整 조정
administrator, admin: 管理员 系统管理员 管理者 관리자 어드민
advertisement, ads: 投放广告 广告投放 リスティング広告 광고집행 광고소재
advertising, ad: 广告 광고
advice, advise: 给建议 助言 相談 조언
affiliate: 联盟营销 アフィリエイト 제휴마케팅
agenda: 议程 會議議程 アジェンダ 議題 안건 의제
agent: 智能体 代理 エージェント 에이전트
aggregate, aggregation: 聚合 汇总 集計 집계
agile: 敏捷 アジャイル 애자일
agriculture, farming: 农业 种植 농업 농사
ai, artificial intelligence: 人工智能 人工智慧 人工知能 인공지능
airport: 机场 空港 공항
alarm, reminder: 闹钟 アラーム 알람
album: 相册 アルバム 앨범
alert: 告警 报警 警报 アラート 警告 경고 알림
alert, on-call: 值班 值守 オンコール 당직 온콜
algorithm: 算法 演算法 アルゴリズム 알고리즘
alipay: 支付宝 アリペイ
allergy: 过敏 アレルギー 알레르기
amazon: 亚马逊 亞馬遜 アマゾン 아마존
analysis, analyze: 分析 解析 분석
analytics: 数据统计 アナリティクス 애널리틱스 통계분석
android: 安卓 アンドロイド 안드로이드
animation: 动画 アニメーション 애니메이션
annual report, yearly: 年报 年度报告 年次報告 연례보고서
anomaly: 异常检测 異常検知 異常 이상탐지 이상치
ansible: アンシブル 앤서블
answer: 回答 答案 解答 答え 답변 대답
answer question, q&a: 问答 質疑応答 질의응답
anti-pattern: 反模式 アンチパターン 안티패턴
api documentation, api reference: 接口文档
api gateway: 网关 閘道 ゲートウェイ 게이트웨이
api key: 密钥
api testing: 接口测试
api, interface: 接口 介面 インターフェース 인터페이스
app store: 应用商店 应用市场 アプリストア 앱스토어
app, application: 应用 应用程序 アプリ アプリケーション 앱 애플리케이션
appeal: 申诉 上诉 不服申立て 異議申し立て 이의신청 항소
apply, application: 申请 報考 応募 申し込み 신청 지원하기
appointment, booking: 预约 アポイント 예약
appraisal, valuation: 鉴定 估价 査定 감정 감정평가
approval: 审批 批准 承認 승인
architecture: 架构 アーキテクチャ 아키텍처
archive: 归档 存档 アーカイブ 보관
argument: 参数 論点 논증 인수
arrange: 安排 手配 마련
array: 数组 陣列 配列 배열
art: 艺术 美术 アート 예술 미술
article: 文章 記事 기사 글
article writing: 写文章 記事作成 記事執筆 글작성
assembly: 汇编 组装 アセンブリ 組み立て 어셈블리 조립
assessment: 评定 考核 アセスメント 진단평가
asset: 资产 자산
assign, distribute: 分配 指派 割り当て 振り分け 할당 배분 분배
assistant: 助手 助理 アシスタント 秘書 비서 어시스턴트 도우미
asynchronous, async: 异步 非同步 非同期 비동기
attachment: 附件 添付 添付ファイル 첨부 첨부파일
attack: 攻击 공격
attendance: 考勤 出勤 勤怠 출근 근태
attendee, participant: 参会者 与会者 参加者 出席者 참석자 참가자
audience: 受众 观众 听众 読者層 オーディエンス 청중 관객
audio: 音频 音訊 音声 オーディオ 오디오 음성
audio editing: 音频剪辑 音声編集 오디오편집
audit: 审计 稽核 監査 감사
augmented reality, ar: 增强现实 拡張現実 증강현실
authentication, login: 认证 登录 登入 ログイン 인증 로그인
authorization: 授权 鉴权 認可 인가
automation, automate: 自动化 자동화
autonomous: 自主 自律 자율
avatar: 头像 アバター 아바타
avoid, prevent: 避免 防止 避ける 予防 방지 예방 막기
award: 奖项 表彰 受賞 수상
azure: アジュール 애저
baby, infant: 婴儿 宝宝 赤ちゃん 乳児 아기 유아
backend: 后端 後端 バックエンド 백엔드
background job: 后台任务 后台作业 背景作業 バックグラウンドジョブ バックグラウンド処理 백그라운드
background removal: 抠图 去背景 背景除去 배경제거 누끼
backlink: 外链 反向链接 被リンク 백링크
backlog: 待办列表 积压 バックログ 백로그
backtest, backtesting: 回测 バックテスト 백테스트
backup: 备份 バックアップ 백업
backward compatibility: 向后兼容 兼容性 向下相容 後方互換 互換性 하위호환 호환성
balance sheet: 资产负债表 貸借対照表 대차대조표 재무상태표
bandwidth: 带宽 頻寬 帯域 대역폭
bank: 银行 은행
barcode, qr code: 条形码 二维码 バーコード 바코드 큐알코드
baseball: 棒球 野球 야구
basketball: 篮球 バスケ 농구
batch: 批量 批处理 バッチ 一括 일괄 배치
battery: 电池 バッテリー 배터리
behavior: 行为 行動 행동
behavioral: 行为分析 行動分析 행동분석
benchmark: 基准测试 性能测试 ベンチマーク 벤치마크
best practice: 最佳实践 最佳實務 ベストプラクティス 모범사례 베스트프랙티스
bias: 偏见 偏差 認知バイアス バイアス 편향 편견
bid, tender: 投标 招标 标书 入札 입찰
big data: 大数据 ビッグデータ 빅데이터
bilibili: 哔哩哔哩 ビリビリ
bill, billing: 账单 請求 청구
binary: 二进制 二進位 バイナリ 바이너리 이진
bioinformatics: 生物信息学 バイオインフォマティクス 생물정보학
biology: 生物学 生物 생물학
birthday: 生日 誕生日 생일
bitcoin: 比特币 ビットコイン 비트코인
blender: ブレンダー 블렌더
block: 拦截 屏蔽 ブロック 차단
blockchain: 区块链 ブロックチェーン 블록체인
blog: 博客 部落格 ブログ 블로그
blood pressure, blood sugar: 血压 血糖 혈압 혈당
blue-green, canary: 灰度发布 蓝绿部署 カナリアリリース 카나리배포
blueprint: 蓝图 設計図 青写真 청사진
board of directors: 董事会 取締役会 이사회
board, kanban: 看板 カンバン ボード 칸반 보드
body, fitness: 健身 フィットネス 筋トレ 헬스 피트니스
book: 书籍 图书 本 책 도서
bookkeeping: 记账 记帐 簿記 帳簿 부기 장부
bookmark: 书签 ブックマーク 북마크 즐겨찾기
boolean: 布尔 ブール 불리언
bottleneck: 瓶颈 ボトルネック 병목
brainstorm: 头脑风暴 腦力激盪 ブレスト ブレインストーミング 브레인스토밍
branch: 分支 ブランチ 브랜치
brand: 品牌 ブランド 브랜드
brand naming: 品牌命名 ネーミング 브랜드네이밍
brand voice, brand guidelines: 品牌调性 ブランドガイドライン 브랜드가이드
breach: 泄露 洩漏 漏えい 侵害 유출 침해
break even: 盈亏平衡 損益分岐 손익분기
breaking change: 破坏性变更 不兼容变更 破壊的変更
brick, masonry: 砌砖 砖墙 砖块 磚 レンガ 煉瓦 벽돌 조적
bridge: 桥梁 ブリッジ 橋 브리지 다리
brief, briefing: 简要 简介 概要 ブリーフィング 브리핑
broker: 经纪人 中介 ブローカー 仲介 중개인 브로커
browser: 浏览器 ブラウザ 브라우저
browser automation: 浏览器自动化 ブラウザ自動化 ブラウザ操作 브라우저자동화
browser extension: 浏览器插件 浏览器扩展 拡張機能 확장프로그램
browser test: 浏览器测试 ブラウザテスト 브라우저테스트
brute force: 暴力破解 総当たり 무차별대입
budget: 预算 予算 예산
bug, defect: 缺陷 バグ 不具合 버그 결함
build: 构建 編譯 ビルド 構築 빌드 구축
build app, make app: 做应用 アプリ開発 앱개발
building: 建筑 建物 건물 건축
bulk: 批次 大量 まとめて 대량
bundle: 打包体积 バンドル 번들
business: 业务 商业 ビジネス 事業 비즈니스 사업
business card: 名片 名刺 명함
business model: 商业模式 ビジネスモデル 비즈니스모델
business plan: 商业计划 创业计划书 事業計画 사업계획
button: 按钮 ボタン 버튼
buy: 买 购买 購入 買う 구입
bytecode: 字节码 バイトコード 바이트코드
cache: 缓存 快取 キャッシュ 캐시
calculate: 计算 계산
calendar: 日历 カレンダー 달력 캘린더
calendar event: 日历事件 予定を追加 일정추가
call, phone: 电话 来电 通话 전화 통화
callback: 回调 回呼 コールバック 콜백
camera: 摄像头 相机 カメラ 카메라
campaign: 活动 キャンペーン 캠페인
cancel, cancellation: 取消 キャンセル 解約 취소 해지
cancer: 癌症 肿瘤 がん 腫瘍 암
candidate: 候选人 應徵者 候補者 지원자 후보자
capacity: 容量 キャパシティ 용량
caption: 字幕 图注 キャプション 캡션 자막
capture: 捕获 キャプチャ 캡처
car rental: 租车 レンタカー 렌터카
carbon, emission: 碳排放 碳足迹 排出量 カーボン 탄소 배출
card: 卡片 カード 카드
career: 职业 生涯 キャリア 커리어
caregiver, care: 护理 看护 照护 介護 ケア 간병 돌봄 요양
case study: 案例 事例 사례
cash flow: 现金流 キャッシュフロー 현금흐름
catalog: 目录册 カタログ 카탈로그
category, classify: 分类 분류
cdn: 内容分发 コンテンツ配信 콘텐츠전송
cell: 细胞 単一細胞 单细胞 세포
central bank: 央行 中央银行 중앙은행
certificate: 证书 憑證 証明書 인증서
certification: 资格认证 資格 자격증
change: 变更 变化 변경
change, modify: 修改 更改 改成 変える 変更する 바꾸기 바꿔
changelog: 更新日志 变更日志 変更履歴 변경로그
channel: 频道 渠道 チャンネル チャネル 채널
character: 人物 角色设定 キャラクター 登場人物 캐릭터 등장인물
charity, nonprofit: 慈善 公益 非营利 慈善団体 자선 비영리
chart: 图表 チャート グラフ 차트 도표
chat: 聊天 チャット 채팅
chatbot: 聊天机器人 チャットボット 챗봇
check: 检查 チェック 確認 점검 확인 검사
checklist: 检查清单 核对表 チェックリスト 체크리스트
chemistry, chemical: 化学 化合物 화학 화합물
chess, board game: 象棋 桌游 将棋 ボードゲーム 체스 보드게임
child, children: 儿童 孩子 小孩 子供 こども 어린이 아이 아동
chinese: 中文 汉语 中国語 중국어
choose, select, selection: 选择 挑选 選び 選ぶ 선택 고르기
chronicle, diary, journal: 日记 일기 다이어리
churn: 流失 客户流失 解約率 離脱 이탈
circuit breaker: 熔断 サーキットブレーカー 서킷브레이커
circuit, electronics: 电路 电子 回路 電子回路 회로 전자
citation: 引用 引文 文献引用 인용
city: 城市 都市 도시
claim: 索赔 理赔 クレーム 청구권 주장
clarity, clear: 清晰 明确 わかりやすい 명확
class, course: 课程 講座 コース 강의 과정
classifier, classification: 分类器 분류기
clean, cleanup: 清理 清洗 整理 クリーンアップ 정리
client, customer: 客户 顧客 クライアント 고객
clinical: 临床 임상
clinical trial: 临床试验 治験 임상시험
clipboard: 剪贴板 クリップボード 클립보드
clock: 时钟 時計 시계
close: 关闭 閉じる 닫기
clothes, fashion: 服装 时尚 穿搭 衣服 ファッション 옷 패션
cloud: 云 雲端 クラウド 클라우드
cloud computing, cloud: 云计算 云服务 云服务器 上云 雲端運算 クラウドサービス 클라우드서비스
cloud cost: 云成本 クラウドコスト 클라우드비용
cluster: 集群 叢集 クラスター 클러스터
cluster analysis, clustering: 聚类 クラスタリング 군집분석 클러스터링
cms: 内容管理 コンテンツ管理 콘텐츠관리
coach, coaching: 教练 辅导 コーチング コーチ 코칭 코치
code: 代码 程式碼 コード 코드
code comment, docstring: 代码注释 コードコメント 코드주석
code explanation: 代码讲解 コード解説 코드설명
code generation: 代码生成 コード生成 코드생성
code quality: 代码质量 コード品質 코드품질
code review: 代码审查 代码评审 コードレビュー 코드리뷰
codebase: 代码库 程式碼庫 コードベース 코드베이스
coding style, code style: 代码规范 编码规范 コーディング規約 코딩스타일 코딩컨벤션
coffee: 咖啡 コーヒー 커피
cold call: 陌生电话 テレアポ 콜드콜
cold email: 开发信 陌生邮件 営業メール 콜드메일
collaborate: 合作 协同 협력
collaboration: 协作 共同作業 協業 협업
collateral: 抵押 抵押物 担保 담보
collect: 收集 采集 수집
collection: 集合 コレクション 컬렉션
college admission: 大学申请 留学 升学 入試 受験 유학 입시
color: 颜色 配色 色 カラー 색상
column: 列 专栏 カラム コラム 칼럼 열
combine: 结合 组合 組み合わせ 결합 조합
comic, manga: 漫画 マンガ 만화 웹툰
command line, cli: 命令行 命令行工具 コマンドライン 명령줄 커맨드라인
comment: 注释 评论 註解 コメント 주석 댓글
commercial: 商用 商用化 상업
commit: 提交 コミット 커밋
communication: 沟通 通信 コミュニケーション 소통 의사소통
community: 社区 社群 コミュニティ 커뮤니티
company: 公司 企业 会社 회사 기업
compare, comparison: 比较 对比 비교
compensation: 薪酬 补偿 報酬 報酬制度 보상
competition, contest: 比赛 竞赛 コンテスト 競技 대회 경기
competitor, competitive: 竞品 竞争对手 競爭 競合 경쟁사 경쟁
compile, compiler: 编译 编译器 コンパイル コンパイラ 컴파일 컴파일러
complaint: 投诉 客诉 苦情 불만 민원
complete: 完成 完了 완료
complex, complexity: 复杂 복잡
compliance: 合规 コンプライアンス 규정준수 준수
component: 组件 元件 コンポーネント 部品 컴포넌트
compress: 压缩 압축
compute: 运算 演算 연산
computer: 电脑 计算机 コンピュータ 컴퓨터
concise: 简洁 精简 간결
concurrency: 高并发 并发量 并发编程 并发控制 并发问题 并发处理 并行 並行処理 並列 동시성 병렬
condition, readiness: コンディション 体調 컨디션
conference: 大会 峰会 カンファレンス 컨퍼런스
confidential, secret: 机密 保密 秘密 기밀 비밀
config, configuration: 配置 設定 设置 설정 구성
configure: 配置 設定する 설정하기
conflict: 冲突 競合解決 コンフリクト 충돌 갈등
connect, connection: 连接 接続 연결
consent: 同意 知情同意 동의
consistency: 一致性 整合性 一貫性 일관성
constraint: 约束 制約 제약
construction: 施工 建设 工程施工 工事 건설 시공
consult: 请教 相談する 상담하기
consultant, consulting: 咨询 顾问 コンサル コンサルティング 컨설팅
consumer: 消费者 소비자
contact: 联系人 联络人 通讯录 連絡先 연락처
container: 容器 コンテナ 컨테이너
container image: 镜像 映像檔 コンテナイメージ 컨테이너이미지
content: 内容 コンテンツ 콘텐츠
content calendar: 内容日历 コンテンツカレンダー 콘텐츠캘린더
content strategy: 内容策略 コンテンツ戦略 콘텐츠전략
context: 上下文 语境 文脈 コンテキスト 컨텍스트 맥락
context window: 上下文窗口 コンテキストウィンドウ 컨텍스트윈도우
continuous delivery, deployment, cd: 持续交付 持续部署 継続的デリバリー 지속적배포
continuous integration, ci: 持续集成 継続的インテグレーション 지속적통합
contract: 合同 合約 契约 契約書 계약 계약서
contract review: 合同审查 合同审核 契約書レビュー 契約審査 계약검토 계약서검토
contrast: 对比度 コントラスト 대비
contributor, contribution: 贡献 기여
control: 控制 操控 制御 コントロール 操作 제어 조작
conversation, dialogue: 对话 会話 대화
conversion rate: 转化率 轉換率 コンバージョン 전환율
convert: 转换 変換 변환
cookie: 曲奇 クッキー 쿠키
cooking: 做饭 烹饪 料理 요리
coordinate: 协调 調整する 조율
copy, copywriting: 文案 コピーライティング 카피
copyright: 版权 著作权 저작권
correct, correction: 纠正 更正 訂正 정정 교정
correlation: 相关性 相関 상관관계
cost: 成本 费用 コスト 비용 원가
counseling, therapy: 心理咨询 心理辅导 カウンセリング セラピー 상담
count: 计数 数え カウント 세기
country: 国家 国別 국가 나라
coupon, discount: 优惠券 折扣 优惠 クーポン 割引 쿠폰 할인
cover letter: 求职信 カバーレター 자기소개서 커버레터
coverage: 覆盖率 涵蓋率 カバレッジ 網羅 커버리지
craft, handmade: 手工 手工艺 手作り ハンドメイド 수공예
crash: 崩溃 当机 クラッシュ 크래시
crawler, scraping: 爬虫 抓取 スクレイピング クローラー 크롤링 스크래핑
create: 创建 制作 建立 作成 만들기 생성 작성
create, make: 做一个 做个 制作 新建 作って 作り 作る 만들어 만들 제작 작성해줘
creative: 创作 创意设计 クリエイティブ 창작 창의
credential: 凭据 凭证 資格情報 認証情報 자격증명
credit: 信用 信贷 征信 クレジット 与信 신용
credit card: 信用卡 クレジットカード 신용카드
crisis: 危机 위기
crm: 客户关系 客户关系管理 顧客管理 고객관리
cron, scheduled job: 定时任务 排程 定期実行 ジョブスケジュール 크론 예약작업
cross-platform: 跨平台 クロスプラットフォーム 크로스플랫폼
cryptocurrency, crypto: 加密货币 虚拟货币 仮想通貨 暗号資産 암호화폐 가상화폐 코인
cryptography, encryption: 加密 暗号化 암호화
css, stylesheet: 样式表 スタイルシート 스타일시트
csv: 逗号分隔 カンマ区切り
culture: 文化 企業文化 カルチャー 문화
currency, exchange rate: 汇率 货币 外汇 為替 通貨 환율 통화
curriculum, syllabus: 教学大纲 课程设计 カリキュラム シラバス 커리큘럼 교과
customer journey: 用户旅程 客户旅程 カスタマージャーニー 고객여정
customer retention: 客户留存 留存 顧客維持 고객유지
customer review: 用户评价 差评 口コミ レビュー分析 고객리뷰 후기
customer service, customer support: 客服 客户服务 カスタマーサポート 고객지원
customer success: 客户成功 カスタマーサクセス 고객성공
customer support: 售后 客户支持 顧客対応 고객응대
customize: 定制 自定义 客製化 カスタマイズ 맞춤
cybersecurity: 网络安全 資安 信息安全 情報セキュリティ サイバーセキュリティ 사이버보안 정보보안
daily, day: 每天 每日 日报 日次 매일 일일
dark mode: 深色模式 暗黑模式 ダークモード 다크모드
dashboard: 仪表盘 看板 儀表板 ダッシュボード 대시보드
data: 数据 資料 データ 데이터
data analysis: 数据分析 データ分析 데이터분석
data cleaning: 数据清洗 データクレンジング 데이터정제
data engineering: 数据工程 データエンジニアリング 데이터엔지니어링
data lake: 数据湖 データレイク 데이터레이크
data mining: 数据挖掘 データマイニング 데이터마이닝
data modeling, data model: 数据建模 数据模型 データモデリング データモデル 데이터모델링 데이터모델
data pipeline, etl: 数据管道 数据流水线 データパイプライン 데이터파이프라인
data protection, gdpr: 数据保护 個人情報保護 データ保護 개인정보보호
data quality: 数据质量 データ品質 데이터품질
data science: 数据科学 データサイエンス 데이터사이언스
data structure: 数据结构 データ構造 자료구조
data validation: 数据校验 数据验证 データ検証 데이터검증
data visualization: 数据可视化 データ可視化 데이터시각화
data warehouse: 数仓 数据仓库 データウェアハウス 데이터웨어하우스
database: 数据库 資料庫 データベース 데이터베이스
database migration: 数据库迁移 데이터베이스마이그레이션
database schema, table structure: 表结构 库表设计 数据库表 テーブル設計 테이블설계 디비설계
dataset: 数据集 資料集 データセット 데이터셋
date: 日期 日付 날짜
dead code, unused: 死代码 未使用 デッドコード 불필요한코드
deadline: 截止日期 期限 締め切り 마감 기한
deadlock: 死锁 デッドロック 교착상태 데드락
debt: 债务 负债 負債 借金 부채 채무
debug, debugging: 调试 除錯 デバッグ 디버깅 디버그
decide: 决定 決める 결정
decision: 决策 意思決定 의사결정
decision tree: 决策树 決定木 의사결정나무
deck, pitch deck: 路演 融资演示 ピッチデック ピッチ資料 피치덱
decompose, break down: 拆分 分解 拆解 분해 세분화
deep learning: 深度学习 ディープラーニング 深層学習 딥러닝
deep research: 深度研究 深入调研 ディープリサーチ 심층조사 심층연구
define: 定义 정의
delegate: 委派 委托 委任 위임
delete, remove: 删除 移除 削除 삭제 제거
delivery: 交付 配送 納品 배송
delivery, food: 外卖 外送 出前 デリバリー 음식배달 배달
demand: 需求预测 需要 수요
demo: 演示 デモ 데모 시연
demonstrate, show: 展示 表示 보여줘 표시
dental, dentist: 牙科 牙医 歯科 歯医者 치과
dependency: 依赖 依存関係 의존성
dependency injection: 依赖注入 依存性注入 의존성주입
dependency update: 依赖升级 依存関係更新 의존성업데이트
deploy model, model deployment: 模型部署 モデルデプロイ 모델배포
deploy, deployment: 部署 上线 デプロイ 展開 배포
deprecation, deprecated: 弃用 廃止 非推奨 지원중단
depreciation: 折旧 減価償却 감가상각
describe, description: 描述 说明文字 説明文 記述 설명문 서술
design: 设计 デザイン 디자인 설계
design pattern: 设计模式 デザインパターン 디자인패턴
design system: 设计系统 デザインシステム 디자인시스템
designer: 设计师 デザイナー 디자이너
desk, desktop: 桌面 デスクトップ 데스크톱 바탕화면
desktop app: 桌面应用 デスクトップアプリ 데스크톱앱
detect, detection: 检测 検出 検知 탐지 감지
develop: 研发 开发一个 研究開発 개발하기
developer, development: 开发 开发者 개발 개발자
device: 设备 デバイス 機器 기기 장치
devops: 运维开发 開発運用 데브옵스
diagnose, diagnosis: 诊断 진단
diagram: 示意图 流程图 架构图 図 ダイアグラム 図解 다이어그램 도식
diet, nutrition: 饮食 营养 减肥 栄養 食事 ダイエット 영양 식단 다이어트
difference, diff: 差异 区别 差分 違い 차이
digital marketing: 数字营销 數位行銷 デジタルマーケティング 디지털마케팅
digital twin: 数字孪生 デジタルツイン 디지털트윈
dingtalk: 钉钉 釘釘
directory structure: 目录结构 ディレクトリ構成 디렉터리구조
directory, folder: 目录 文件夹 資料夾 フォルダ ディレクトリ 폴더 디렉터리
disaster: 灾难 灾害 被災 재난 재해
disaster recovery: 灾备 容灾 灾难恢复 災害復旧 재해복구
discord: ディスコード 디스코드
discovery: 发现 探索 発見 ディスカバリー 발견
discuss: 讨论 議論 토론 논의
disease, illness: 疾病 病気 疾患 질병 질환
disk, disk space: 磁盘 硬盘 磁盘空间 硬碟 ディスク 空き容量 디스크
dispute: 纠纷 争议 紛争 분쟁
distributed: 分布式 分散式 分散 분산
dividend: 股息 分红 配当 배당
dns, domain name: 域名解析 ドメイン名 도메인이름
docker: ドッカー 도커
doctor, physician: 医生 醫師 医者 의사
document: 文档 文件 文書 ドキュメント 資料 문서
document management: 文档管理 文書管理 문서관리
documentation: 技术文档 説明書 仕様書 설명서
dog, pet: 宠物 狗 猫 ペット 犬 반려동물 강아지 고양이
domain: 域名 领域 ドメイン 도메인
donation, fundraising: 捐款 募捐 筹款 寄付 募金 기부 모금
download: 下载 ダウンロード 다운로드
draft: 草稿 起草 下書き 草案 초안
draw: 画一个 画图 描く 描いて 그려
drawing: 画图 绘图 绘制 描画 그림 그리기
driver: 司机 驾驶员 運転手 ドライバー 운전기사 운전자 드라이버
drone: 无人机 ドローン 드론
drug, medication: 药物 用药 药品 薬 医薬品 약물 의약품 복약
due diligence: 尽职调查 尽调 デューデリジェンス 실사
duplicate, deduplicate: 重复 去重 중복
e-book, ebook: 电子书 電子書籍 전자책
e2e, end-to-end test: 端到端测试 端到端 エンドツーエンド 엔드투엔드
earnings: 财报 盈利 決算 실적
earthquake: 地震 지진
ecommerce: 电商 电子商务 ネットショップ 通販 이커머스 쇼핑몰
economy, economic: 经济 经济数据 경제
edge computing: 边缘计算 エッジコンピューティング 엣지컴퓨팅
edit, editor: 编辑 編集 エディタ 편집
education: 教育 教学 교육
elderly, older: 老人 养老 高齢者 老後 노인 고령자
electric vehicle: 电动车 新能源车 電気自動車 전기차
electricity, energy: 能源 电力 エネルギー 에너지 전력
email marketing: 邮件营销 メールマーケティング メール配信 이메일마케팅
email thread: 邮件往来 メールスレッド 이메일스레드
email, mail: 邮件 电子邮件 メール 이메일 메일
embedded, firmware: 嵌入式 固件 組み込み ファームウェア 임베디드 펌웨어
embedding, vector: 向量 嵌入 ベクトル 埋め込み 벡터 임베딩
emergency: 紧急 应急 非常時 긴급 응급 비상
emoji, sticker: 表情符号 贴纸 絵文字 スタンプ 이모지 스티커
emotion, sentiment: 情绪 情感 感情 감정 감성
employee: 员工 従業員 社員 직원
employee handbook: 员工手册 就業規則 취업규칙
employee training: 员工培训 培训 研修 社員教育 직원교육 연수
employment: 就业 雇佣 雇用 고용 취업
enable: 启用 有効化 활성화
encrypt: 加密文件 暗号化する 암호화하기
endpoint: 端点 エンドポイント 엔드포인트
engineer, engineering: 工程师 工程 エンジニア 工学 엔지니어 공학
english: 英文 英语 영어
english writing: 英文写作 英作文 영작
enterprise: 企业级 エンタープライズ 엔터프라이즈
entity: 实体 エンティティ 엔티티 개체
environment: 环境 환경
environment variable: 环境变量 環境變數 환경변수
equation, formula: 公式 方程 数式 方程式 수식 공식
equity, shares: 股权 股份 持株 지분
error: 报错 异常 錯誤 エラー 오류 에러 出错
error handling: 错误处理 异常处理 エラー処理 例外処理 에러처리 예외처리 오류처리
error message: 错误信息 报错信息 エラーメッセージ 오류메시지
escalation: 升级处理 上报 エスカレーション 에스컬레이션
essay: 散文 作文 随笔 エッセイ 小論文 에세이
estimate: 估算 评估 見積 見積もり 견적 추정
etf, index fund: 指数基金 インデックスファンド 상장지수펀드
ethereum: 以太坊 イーサリアム 이더리움
ethics: 伦理 道德 윤리
evaluate, evaluation: 评测 评价 評估 평가
event: 事件 イベント 이벤트 행사
event driven: 事件驱动 イベント駆動 이벤트기반
event sourcing: 事件溯源 イベントソーシング 이벤트소싱
example: 示例 例子 範例 例 예제 예시
excel, spreadsheet: 表格 电子表格 試算表 表計算 エクセル 스프레드시트 엑셀
excel, xlsx: エクセル 엑셀
exception: 例外 异常 예외
executive: 高管 管理层 役員 経営陣 임원 경영진
exercise plan, workout plan: 健身计划 训练计划 運動計画 운동계획
exercise, training: 训练 锻炼 トレーニング 훈련 운동
exhibition: 展览 展会 展示会 전시회
existing: 既存 现有 기존
expense: 报销 支出 経費 경비 지출
expense tracking, expense tracker: 记账 花销记录 家計簿 支出管理 가계부
experiment: 实验 실험
experiment design: 实验设计 実験計画 실험설계
explain, explanation: 解释 讲解 説明 설명
exploit: 漏洞利用 エクスプロイト 익스플로잇
explore: 浏览 探查 탐색
export: 导出 匯出 エクスポート 書き出し 내보내기
export data: 数据导出 データ書き出し 데이터내보내기
expose, exposed: 暴露 露出 公開された 노출
exposed devices: 暴露设备 公開デバイス 노출된장비
extract: 提取 抽取 擷取 抽出 추출
eye, vision: 视觉 视力 시각 시력
facebook: 脸书 フェイスブック 페이스북
fact check: 事实核查 核实 ファクトチェック 팩트체크 사실확인
fallacy: 谬误 逻辑谬误 誤謬 論理的誤り 오류논증 논리적오류
family: 家庭 家族 家人 가족
faq, frequently asked questions: 常见问题 よくある質問 자주묻는질문
feature: 功能 特性 機能 기능
feature engineering: 特征工程 特徴量 특성공학 피처엔지니어링
feature flag: 功能开关 特性开关 フィーチャーフラグ 기능플래그
feature request: 功能需求 機能要望 기능요청
feedback: 反馈 回饋 フィードバック 피드백
feishu, lark: 飞书 フェイシュー
fetch, get, retrieve: 获取 拉取 取得 取ってくる 가져와 가져오기 불러오기 조회
field: 字段 欄位 フィールド 項目 필드 항목
figma: 设计稿 デザインカンプ 피그마
file: 文件 檔案 ファイル 파일
file conversion, convert file: 格式转换 文件转换 ファイル変換 形式変換 파일변환
file organization: 文件整理 ファイル整理 파일정리
file upload: 文件上传 ファイルアップロード 파일업로드
fill, fill in: 填写 填表 記入 入力 입력 기입
film, movie: 电影 影视 映画 영화
filter: 过滤 筛选 フィルタ 필터
finance, financial: 财务 金融 ファイナンス 재무 금융
financial aid: 助学金 学费补助 学資援助 학자금
financial independence: 财务自由 财务独立 経済的自立 경제적자유 경제적자립
financial model: 财务模型 财务建模 財務モデル 재무모델
financial planning: 理财规划 理财 財務規劃 資産運用 ファイナンシャルプラン 재무설계 재테크
financial statement: 财务报表 財務諸表 決算書 재무제표
find, look up: 查找 寻找 找到 找出 見つけ 探し 찾기 찾아
fine-tune, fine-tuning: 微调 ファインチューニング 파인튜닝 미세조정
fire: 火灾 火事 화재
firewall: 防火墙 ファイアウォール 방화벽
fix, repair: 修复 修正 修理 수정 수리
flashcard: 抽认卡 闪卡 単語カード フラッシュカード 플래시카드 암기카드
flight, airline: 航班 机票 飞机 航空券 フライト 飛行機 항공권 비행기 항공
flood: 洪水 水灾 수해 홍수
flowchart, workflow: 流程 工作流 ワークフロー フロー 워크플로
flower, garden: 园艺 花园 鲜花 花 庭 ガーデニング 꽃 정원 원예
focus: 专注 集中 집중
folder structure: 文件夹结构 フォルダ構成 폴더구조
follow: 关注 フォロー 팔로우
follow-up: 跟进 后续 フォローアップ 후속
follower: 粉丝 关注者 フォロワー 팔로워
font: 字体 字型 フォント 폰트 글꼴
football, soccer: 足球 サッカー 축구
forecast, prediction: 预测 予測 예측
foreign language: 外语 外国語 외국어
forensics: 取证 フォレンジック 포렌식
form: 表单 フォーム 양식 폼
form validation: 表单验证 フォーム検証 폼검증
format, formatting: 格式 格式化 排版 フォーマット 書式 형식 서식
forum: 论坛 フォーラム 포럼
framework: 框架 フレームワーク 프레임워크
fraud, scam: 欺诈 诈骗 詐欺 不正 사기
freelance: 自由职业 接案 フリーランス 프리랜서
frequency: 频率 頻度 周波数 빈도 주파수
frontend: 前端 フロントエンド 프런트엔드 프론트엔드
full stack: 全栈 全端 フルスタック 풀스택
full text search: 全文检索 전문검색
function: 函数 関数 함수
function calling, tool use: 函数调用 工具调用 関数呼び出し 함수호출
functional programming: 函数式编程 函数式 関数型 함수형
fund: 基金 资金 ファンド 펀드 자금
funding, fundraise, investor: 融资 投资人 資金調達 投資家 투자유치 투자자
funnel: 漏斗 ファネル 퍼널
furniture, interior: 家具 装修 室内设计 インテリア 인테리어 가구
fuzzing, fuzz: 模糊测试 ファジング 퍼징
game: 游戏 ゲーム 게임
game development: 游戏开发 ゲーム開発 게임개발
game engine: 游戏引擎 ゲームエンジン 게임엔진
gantt, project schedule: 甘特图 ガントチャート 간트차트
gap analysis: 差距分析 ギャップ分析 갭분석
garbage collection: 垃圾回收 ガベージコレクション 가비지컬렉션
garmin: 佳明 ガーミン 가민
gene, genome, genomics: 基因 基因组 遺伝子 ゲノム 유전자 유전체
general ledger, ledger: 总账 帐本 総勘定元帳 원장
generate, generation: 生成 产生 自動生成 생성
generative ai: 生成式人工智能 생성형
geography, geospatial, gis: 地理 地理空间 地理情報 지리 공간정보
gift: 礼物 プレゼント 贈り物 선물
git branch: 代码分支 ブランチ運用 브랜치전략
git commit, commit message: 提交信息 提交说明 コミットメッセージ 커밋메시지
github: ギットハブ 깃허브
gitlab: ギットラボ 깃랩
glossary, terminology: 术语 术语表 用語集 用語 용어 용어집
go-to-market, gtm: 上市策略 市场进入 市場投入 시장진출
goal, objective: 目标 목표
golang, go language: 고언어 고랭
google: 谷歌 グーグル 구글
government: 政府 政务 行政 정부 행정
grade, score: 评分 打分 成绩 採点 スコア 채점 성적 점수
grammar: 语法 文法 문법
graph: 图论 图结构 グラフ構造 그래프
graphic: 图形 平面设计 グラフィック 그래픽
greeting: 问候 挨拶 인사말
group: 分组 小组 グループ 그룹
growth: 增长 成长 グロース 성장
guide: 引导 案内 안내
guide, tutorial: 指南 教程 教學 ガイド チュートリアル 가이드 튜토리얼
guideline: 准则 指导方针 ガイドライン 지침 가이드라인
habit: 习惯 습관
hacking, penetration test, pentest: 渗透测试 渗透 黑客 ペネトレーションテスト 侵入テスト 침투테스트 모의해킹
hallucination: 幻觉 ハルシネーション 환각
handle: 应对 対処 対応 대응 대처
handoff, handover: 交接 引き継ぎ 引継ぎ 인수인계
hardware: 硬件 硬體 ハードウェア 하드웨어
hash: 哈希 雜湊 ハッシュ 해시
heading, header: 标题结构 页眉 見出し構造 ヘッダー 헤더
headline: 标题党 头条 見出し 헤드라인
health: 健康 ヘルス 건강
health check: 健康检查 ヘルスチェック 헬스체크 상태점검
heart rate: 心率 心拍 심박
heating, hvac: 暖通 空调 冷暖房 냉난방 공조
help, assist: 帮助 协助 手助け 도움
high availability: 高可用 高可用性 可用性 고가용성
high contrast: 高对比度 ハイコントラスト 고대비
hire: 录用 雇う 고용하기
hiring plan: 招聘计划 採用計画 채용계획
hiring, recruitment: 招聘 招募 採用 채용
history: 历史 履歴 이력 역사
holiday, vacation, leave: 假期 请假 休假 休暇 祝日 有給 휴가 휴일 연차
home: 首页 家庭 ホーム 홈
homework, assignment: 作业 家庭作业 宿題 課題提出 숙제 과제
hospital: 医院 病院 병원
host, hosting: 托管 主机 ホスティング 호스팅
host, serve: 提供服务 提供 제공
hot reload: 热更新 热重载 ホットリロード
hotel: 酒店 ホテル 호텔
hotel booking: 订酒店 ホテル予約 호텔예약
house, apartment: 房子 房屋 公寓 住宅 マンション 주택 아파트 집
household, chores: 家务 家事 집안일
hr, human resources: 人力资源 人事 인사
html: 网页代码 網頁原始碼
humor, joke, funny: 笑话 幽默 搞笑 冗談 ユーモア 유머 농담
hypothesis: 假设 仮説 가설
icon: 图标 圖示 アイコン 아이콘
icon design: 图标设计 アイコン作成 아이콘디자인
idea: 想法 创意 アイデア 아이디어
identify: 识别 辨識 特定 식별
identity: 身份 アイデンティティ 本人確認 신원 신분
illustration: 插画 插图 イラスト 挿絵 일러스트 삽화
image generation: 图像生成 文生图 生图 画像生成 이미지생성
image processing: 图像处理 画像処理 이미지처리
image recognition, computer vision: 图像识别 计算机视觉 画像認識 コンピュータビジョン 이미지인식 컴퓨터비전
image, picture: 图片 图像 画像 イメージ 이미지 그림
immigration, visa: 签证 移民 ビザ 査証 비자 이민
impact: 影响 インパクト 영향
implement, implementation: 实现 实施 実装 구현
import: 导入 匯入 インポート 取り込み 가져오기
improve, optimize: 优化 改进 最適化 改善 최적화 개선
inbox: 收件箱 受信箱 受信トレイ 받은편지함
incident: 故障 事故 インシデント 障害 장애 사고
incident response: 应急响应 事件响应 インシデント対応 障害対応 장애대응 사고대응
income statement, profit and loss: 利润表 损益表 損益計算書 손익계산서
index: 索引 インデックス 색인
industry: 行业 产业 業界 산업
inference: 模型推理 推論処理 추론하기
inflation: 通胀 通货膨胀 インフレ 物価 인플레이션 물가
influencer, creator: 网红 达人 博主 インフルエンサー 인플루언서
infographic: 信息图 インフォグラフィック 인포그래픽
information: 信息 資訊 情報 정보
infrastructure: 基础设施 インフラ 인프라
infrastructure as code: 基础设施即代码 インフラのコード化 코드형인프라
inject, injection: 注入 インジェクション 인젝션 주입
inline, embed: 内嵌 インライン 인라인
innovation: 创新 イノベーション 혁신
input: 输入 입력값
insight: 洞察 インサイト 인사이트
inspect: 查看 檢視 閲覧 살펴보기
inspect, inspection: 巡检 检视 点検 検査 검수
instagram: インスタグラム インスタ 인스타그램 인스타
install, installation: 安装 インストール 설치
instruction: 指令 说明 指示 지시
insurance: 保险 보험
integration: 集成 整合 統合 連携 통합 연동
integration test: 集成测试 結合テスト 統合テスト 통합테스트
intellectual property: 知识产权 知的財産 지식재산 지적재산권
interaction: 交互 互動 インタラクション 상호작용 인터랙션
interest rate: 利率 金利 금리 이자율
intern, internship: 实习 インターン 인턴
internal audit: 内部审计 内审 内部監査 내부감사
internal link: 内链 内部链接 内部リンク 내부링크
international, internationalization, i18n: 国际化 多语言 多言語 국제화 다국어
internet: 互联网 網際網路 インターネット 인터넷
internet of things, iot: 物联网 モノのインターネット 사물인터넷
interview: 面试 采访 面接 インタビュー 면접 인터뷰
interview question: 面试题 面试问题 面接質問 면접질문
introduction: 介绍 紹介 自己紹介 소개
inventory management: 库存管理 在庫管理 재고관리
inventory, stock: 库存 在庫 재고
investigate, research: 調べて 調べる 調べ 查一下 알아봐
investigation, investigate: 调查 侦查 捜査 수사
investment, invest: 投资 투자
invitation, invite: 邀请 招待 招く 초대
invoice: 发票 請求書 インボイス 송장 청구서
invoice generation: 开发票 请款单 請求書作成 청구서발행
ios, iphone: 苹果手机 アイフォン 아이폰
issue: 问题 议题 課題 이슈
itinerary: 行程 行程规划 旅程 旅行計画 여행일정 일정표
japanese: 日语 日文 日本語 일본어
java: ジャバ 자바
javascript: ジャバスクリプト 자바스크립트
jira: ジラ 지라
job: 作业任务 工作岗位 ジョブ 직무
job description, job posting: 岗位描述 职位描述 招聘岗位 招聘启事 職缺 求人 求人票 채용공고 구인
job interview: 求职面试 模拟面试 採用面接 模擬面接 면접준비 모의면접
job search, job hunting: 找工作 求职 就職活動 転職 구직 이직
job, resume: 求职 简历 履歷 履歴書 職務経歴書 이력서 구직
join, connect: 接入 つなぐ 繋ぐ 잇기
journalist, journalism: 记者 新闻报道 ジャーナリスト 기자 언론
json: 제이슨
judge, court: 法官 法院 裁判 裁判所 판사 법원
kakao, kakaotalk: 카카오톡 카카오
kernel: 内核 カーネル 커널
key: 密钥 键 金鑰 キー 키
keyboard, shortcut: 键盘 快捷键 キーボード ショートカット 키보드 단축키
keyword: 关键词 關鍵字 キーワード 키워드
keyword research: 关键词研究 キーワード調査 키워드조사
kids: 亲子 育儿 子育て 육아
kitchen: 厨房 キッチン 주방
knowledge: 知识 ナレッジ 지식
knowledge base: 知识库 ナレッジベース 지식베이스
knowledge graph: 图谱 知识图谱 ナレッジグラフ 지식그래프
korean: 韩语 韓国語 한국어
kpi, key metric: 关键指标 核心指标 重要指標 핵심지표
kubernetes: クーバネティス 쿠버네티스
lab, laboratory: 实验室 研究室 ラボ 실험실 연구실
label, annotation: 标注 标签 ラベル 注釈 라벨
labor: 劳动 労働 노동
labor law: 劳动法 労働法 노동법 근로기준법
landing page: 落地页 着陆页 ランディングページ 랜딩페이지
language: 语言 言語 언어
language learning: 语言学习 学英语 語学学習 英語学習 언어학습 영어공부
laptop: 笔记本电脑 ノートパソコン 노트북컴퓨터
large language model, llm: 大模型 大语言模型 大規模言語モデル 대규모언어모델 거대언어모델
latency: 延迟 遅延 レイテンシ 지연
launch: 启动 产品发布 ローンチ 立ち上げ 런칭 론칭
law, legal: 法律 法务 법률 법무
lawsuit, litigation: 诉讼 起诉 소송
lawyer, attorney: 律师 弁護士 변호사
layout: 布局 版面 レイアウト 레이아웃
lead generation: 获客 潜客开发 リード獲得 リードジェネレーション 리드생성
lead, prospect: 线索 潜在客户 销售线索 見込み客 リード 잠재고객 리드
leader, leadership: 领导 领导力 リーダー リーダーシップ 리더십
learn, learning: 学习 학습
legacy: 遗留 老旧系统 レガシー 레거시
legal research, case law: 判例 法律检索 판례
lesson plan: 教案 教学设计 教學計畫 指導案 授業計画 수업계획 교안
lesson, teaching: 备课 教案 授業 수업
letter: 信件 书信 手紙 レター 편지
level design: 关卡设计 レベルデザイン 레벨디자인
leveraged buyout: 杠杆收购 レバレッジドバイアウト
library: 库 函式庫 ライブラリ 라이브러리
library, books: 图书馆 도서관
license: 许可证 授權 ライセンス 라이선스
lifecycle: 生命周期 ライフサイクル 생명주기 라이프사이클
lighting, light: 灯光 照明 조명
limit, cap: 限制 上限 額度 制限 限度 제한 한도
line: ライン
link: 链接 連結 リンク 링크
lint, linter: 代码检查 静态检查 静的解析 リンター 린트 정적분석
linux: リナックス 리눅스
list: 列表 清单 一覧 リスト 목록
listen: 收听 听 聴く 듣는
listening: 听力 聆听 リスニング 듣기
literature: 文献 文獻 문헌
literature review: 文献综述 文献レビュー 문헌조사 문헌고찰
live stream: 直播 ライブ配信 配信 라이브 생방송
llm, model: 大模型 大语言模型 言語モデル 언어모델
load balancing: 负载均衡 負載平衡 ロードバランサー 負荷分散 로드밸런싱 부하분산
load test: 压力测试 负载测试 压测 負荷テスト 부하테스트
loan, mortgage: 贷款 房贷 ローン 融資 대출
localization: 本地化 ローカライズ 현지화
location: 位置 定位 位置情報 위치
lock: 锁定 加锁 ロック 잠금
log: 日志 ログ 로그
log analysis: 日志分析 ログ分析 로그분석
log, record: 登记 書き留め 기입하기
logic: 逻辑 論理 ロジック 논리 로직
login page: 登录页 ログイン画面 로그인페이지
logo: 标志 商标 ロゴ 로고
logo design: 标志设计 ロゴデザイン 로고디자인
loop: 循环 迴圈 ループ 루프 반복문
loyalty: 会员 忠诚度 ロイヤルティ 회원 멤버십
luck, fortune, tarot: 占卜 算命 塔罗 占い タロット 운세 타로
mac, macos, apple: 苹果电脑 苹果 マック アップル 맥북 애플
machine learning: 机器学习 機械学習 머신러닝 기계학습
macro: 宏 マクロ 매크로
magazine: 杂志 잡지
mail merge, bulk email: 群发邮件 一斉メール 一斉送信 대량메일
maintain, maintenance: 维护 運維 保守 メンテナンス 유지보수
maintainability: 可维护性 保守性 유지보수성
makefile: 构建脚本 ビルドスクリプト 빌드스크립트
malware, malicious: 恶意软件 病毒 恶意 マルウェア 악성코드 악성
manage, management: 管理 マネジメント 관리
manager, boss: 经理 上司 主管 老板 マネージャー 매니저 상사
manipulation: 操纵 操纵性 操弄 心理操作 조작 선동
manual: 手册 マニュアル 取扱説明書 매뉴얼 안내서
manufacturing, factory: 制造 工厂 生产线 工場 제조 공장
manuscript: 稿件 手稿 原稿 원고
map: 地图 지도
markdown: マークダウン 마크다운
market research: 市场调研 市场研究 市場調査 マーケットリサーチ 시장조사
market share: 市场份额 市場シェア 시장점유율
market, marketing: 市场 营销 行銷 マーケティング 마케팅 시장
marketing plan: 营销计划 营销方案 マーケティング計画 마케팅계획
match: 匹配 一致 일치
matching: 匹配 比對 マッチング 매칭
material: 材料 素材 소재 재료
math: 数学 수학
maths: 算数 算数問題 산수
meal plan: 食谱规划 献立 식단계획
measure, measurement: 测量 度量 測定 計測 측정
mechanical: 机械 機械工学 기계
media: 媒体 メディア 미디어
medical record: 病历 诊断书 カルテ 진단서 진료기록
medical report, test results: 检查报告 体检报告 検査結果 건강검진 검사결과
medical, medicine: 医疗 의료
meditation, mindfulness: 冥想 正念 瞑想 マインドフルネス 명상
meeting: 会议 ミーティング 회의
meeting minutes: 会议纪要 會議記錄 議事録 회의록
meeting notes: 会议笔记 会议记录 會議紀錄 会議メモ 회의록 회의노트
meeting scheduling: 约会议 日程調整 회의일정 일정조율
meeting summary: 会议总结 会議要約 회의요약
meme: 表情包 梗图 迷因 ミーム 밈 짤
memory: 内存 记忆 記憶體 メモリ 메모리 기억
memory leak: 内存泄漏 记忆体洩漏 メモリリーク 메모리누수
mental health: 心理健康 心理 メンタルヘルス 정신건강 심리
mentor: 导师 指导 メンター 멘토
menu: 菜单 メニュー 메뉴
merge: 合并 マージ 結合 병합
merge conflict: 合并冲突 マージコンフリクト 병합충돌
message: 消息 訊息 メッセージ 메시지
message queue: 消息队列 訊息佇列 メッセージキュー 메시지큐
meta tag, schema markup: 结构化数据 構造化データ メタタグ 구조화데이터
metadata: 元数据 詮釋資料 メタデータ 메타데이터
method, methodology: 方法 方法论 研究方法 手法 방법론 연구방법
metric: 指标 メトリクス 지표
microservice, microservices: 微服务 マイクロサービス 마이크로서비스
microsoft: 微软 マイクロソフト 마이크로소프트
middleware: 中间件 中介軟體 ミドルウェア 미들웨어
migrate, migration: 迁移 移行 マイグレーション 마이그레이션 이전
milestone: 里程碑 マイルストーン 마일스톤
mind: 头脑 マインド 마음
mind map: 思维导图 心智圖 マインドマップ 마인드맵
mini program: 小程序 ミニプログラム 미니프로그램
minimal: 最小化 极简 最小限 ミニマル 최소
mission: 使命 ミッション 사명
mobile: 移动端 手机 行動裝置 モバイル 모바일
mobile app: 移动应用 手机应用 モバイルアプリ スマホアプリ 모바일앱
mock: 模拟数据 モック 목업
mockup, wireframe: 线框图 ワイヤーフレーム 와이어프레임
model: 模型 モデル 모델
model evaluation: 模型评估 モデル評価 모델평가
molecule, molecular: 分子 分子生物 분자
money: 钱 金钱 金額 お金 돈 금액
monitor, monitoring: 监控 監視 モニタリング 모니터링
monorepo: 单体仓库 モノレポ 모노레포
month-end close: 结账 月结 月次決算 월마감
monthly, month: 月报 按月 每月 月次 월별 매월 월간
morning: 早上 早晨 朝 아침
mouse: 鼠标 滑鼠 マウス 마우스
move: 移动 이동
moving, relocation: 搬家 引っ越し 引越し 이사
multi-agent, multiple agents: 多智能体 多代理 マルチエージェント 複数エージェント 멀티에이전트 여러에이전트
multi-cloud: 多云 マルチクラウド 멀티클라우드
multiplayer: 多人游戏 マルチプレイヤー 멀티플레이
mushroom, plant: 植物 식물
music: 音乐 음악
music production, compose: 作曲 编曲 音楽制作 작곡
name, naming: 命名 起名 取名 名前 命名規則 이름 작명
narrative, storytelling: 叙事 讲故事 ストーリーテリング 語り 스토리텔링 서사
natural language: 自然语言 自然言語 자연어
natural language processing, nlp: 自然语言处理 自然言語処理 자연어처리
naver: 네이버 ネイバー
navigation: 导航 導覽 ナビゲーション 내비게이션
nda, non-disclosure: 保密协议 秘密保持契約 비밀유지계약
negotiation, negotiate: 谈判 协商 交渉 협상
net worth: 净资产 身家 純資産 순자산
netflix: 网飞 奈飛 ネットフリックス 넷플릭스
network: 网络 網路 ネットワーク 네트워크
neural network: 神经网络 ニューラルネットワーク 신경망
news: 新闻 ニュース 뉴스
newsletter: 简报 通讯 ニュースレター メルマガ 뉴스레터
nonconformity: 不合格 不符合项 不適合 부적합
normalization, normalize: 规范化 标准化 正規化 정규화
nosql: 非关系型数据库 非リレーショナル 비관계형
note: 笔记 メモ ノート 노트 메모
note taking: 做笔记 記笔记 メモを取る 메모하기
notebook: 笔记本 ノートブック 노트북
notification: 通知 推送 プッシュ通知 알림
notify: 告知 通知する 알리기
notion: ノーション 노션
novel writing: 写小说 小説執筆 소설쓰기
novel, fiction: 小说 소설
number: 数字 號碼 番号 数値 숫자 번호
nurse, nursing: 护士 看護師 看護 간호 간호사
oauth: オース
object: 对象 物件 オブジェクト 객체
object oriented: 面向对象 物件導向 オブジェクト指向 객체지향
objective key results, okr: 目标管理 목표관리
observability: 可观测性 オブザーバビリティ 관측가능성 옵저버빌리티
obsidian: 黑曜石 オブシディアン 옵시디언
ocr, text recognition: 文字识别 光学字符识别 文字認識 문자인식 광학문자인식
office: 办公 オフィス 사무
office document: 办公文档 オフィス文書 사무문서
offline: 离线 オフライン 오프라인
onboarding: 入职 オンボーディング 온보딩
one-on-one: 一对一 面談 일대일 면담
online course: 在线课程 网课 線上課程 オンライン講座 온라인강의
ontology: 本体 オントロジー 온톨로지
open: 打开 開く 열기
open data: 开放数据 オープンデータ 공공데이터
open source: 开源 オープンソース 오픈소스
operate: 操作 運営する 운영하기
operating system: 操作系统 作業系統 オペレーティングシステム 운영체제
operation: 运营 營運 運用 운영
opinion, public opinion: 舆情 观点 意见 의견 여론
optimization: 调优 最佳化 チューニング 튜닝
option, derivative: 期权 期货 選擇權 オプション 先物 옵션 선물거래
orchestration: 编排 编制调度 オーケストレーション 오케스트레이션
order: 订单 注文 주문
organization, org structure: 组织架构 组织结构 組織図 組織構造 조직구조 조직도
organize: 组织 整理 조직
orm: 对象关系映射 オブジェクト関係マッピング
outage, downtime: 宕机 停机 服务中断 当機 停止障害 ダウン サービス停止 장애발생 다운타임 서비스중단
outline: 大纲 提纲 アウトライン 개요
outlook: アウトルック 아웃룩
outreach: 触达 开发客户 アウトリーチ 아웃리치
overvalued, undervalued, fair value: 高估 低估 估值 割高 割安 企業価値 고평가 저평가 가치평가
owner, ownership: 负责人 所有者 オーナー 소유자 담당자
package: 打包 软件包 パッケージ 패키지
package manager: 包管理 パッケージ管理 패키지관리
page: 页面 ページ 페이지
pagination: 分页 ページネーション 페이지네이션
paint: 上色 塗る 칠하기
painting: 绘画 油画 塗装 회화
palette: 调色板 カラーパレット 팔레트
paper: 论文 期刊 논문
paper, academic, research: 论文 学术 논문 학술
parallel: 并行 平行處理 並列処理 병렬처리
parameter: 参数 パラメータ 매개변수 파라미터
paraphrase: 复述 言い換え 바꿔쓰기
parent, parenting: 父母 家长 保護者 親 부모
parse: 解析 剖析 パース 파싱
parser: 解析器 パーサー 파서
partner, partnership: 合作伙伴 夥伴 パートナー 提携 파트너 제휴
party: 聚会 派对 パーティー 파티
password: 密码 パスワード 비밀번호
patch: 补丁 パッチ 패치
patent: 专利 特許 특허
patient: 患者 病人 환자
pattern: 模式 パターン 패턴
pawn: 典当 当铺 質屋 전당포
payment integration: 支付接入 決済連携 결제연동
payment, pay: 支付 付款 決済 支払い 결제 지불
pdf: 피디에프
peer review: 同行评审 查読 동료평가
penalty, fine: 罚款 違約金 罰金 벌금 과태료
penetration testing: 渗透测试 侵入検査 침투시험
pension, retirement: 退休 养老金 年金 退職 老後資金 은퇴 연금 퇴직
people: 人员 人脉 人々 사람
perform: 进行 実施 수행
performance: 性能 效能 パフォーマンス 성능
performance management: 绩效管理 成果管理 성과관리
performance optimization: 性能优化 效能優化 パフォーマンス改善 高速化 성능최적화 성능개선
performance review: 绩效考核 绩效 人事評価 成果評価 인사평가 성과평가
period, menstruation: 经期 生理 생리
permission: 授权 许可 허가
persona: 用户画像 人设 ペルソナ 페르소나
personal: 个人 개인
personality: 性格 人格 性格診断 성격
perspective: 视角 觀點 視点 多角的 관점
pharmacy: 药店 药房 薬局 약국
philosophy: 哲学 철학
phishing: 钓鱼 钓鱼邮件 フィッシング 피싱
phone number: 手机号 電話番号 전화번호
photo: 照片 写真 사진
photo editing: 修图 写真加工 写真編集 사진편집 보정
photography: 摄影 撮影 촬영 사진촬영
photoshop: フォトショップ 포토샵
physics: 物理 物理学 물리 물리학
pick: 挑 選定 선정
pipeline: 流水线 管道 パイプライン 파이프라인
pitch: 推介 ピッチ 피치
pivot table: 数据透视表 ピボットテーブル 피벗테이블
pixel: 像素 ピクセル ドット絵 픽셀
plagiarism: 抄袭 查重 盗用 剽窃 표절
plan, planning: 计划 规划 計画 プラン 계획 기획
planet, astronomy: 天文 天文学 천문학
platform: 平台 プラットフォーム 플랫폼
play, playback: 播放 再生 재생
player: 玩家 播放器 球员 プレイヤー 選手 선수 플레이어
plugin: 插件 外掛 プラグイン 플러그인
podcast: 播客 ポッドキャスト 팟캐스트
podcast production: 播客制作 ポッドキャスト制作 팟캐스트제작
poem, poetry: 诗歌 写诗 詩 俳句 시 시쓰기
police, crime: 警察 犯罪 警方 경찰 범죄
policy: 政策 策略 ポリシー 정책
polish, refine: 润色 打磨 推敲 ブラッシュアップ 다듬어 다듬기 윤문
politics, political: 政治 정치
poll, vote: 投票 투표
population: 人口 인구
portfolio: 作品集 投资组合 ポートフォリオ 포트폴리오
position: 职位 岗位 ポジション 포지션
post, posting: 帖子 发帖 推文 貼文 ポスト 게시물 포스팅 게시
post, publish: 发布 发帖 公開する 올리기
poster: 海报 ポスター 포스터
postmortem, post-mortem: 事故复盘 事后分析 复盘报告 事後検証 ポストモーテム 障害報告 사후분석 포스트모템 회고
power, influence: 影响力 영향력
powerpoint, ppt, pptx: パワーポイント パワポ 파워포인트 피피티
practice: 练习 연습
prayer: 祷告 礼拜 祈祷 お祈り 기도 예배
pregnancy: 怀孕 孕期 妊娠 임신
prepare, preparation, prep: 准备 備え 준비
presentation: 汇报 演示 發表 プレゼン 발표
presentation, slides: 演示文稿 幻灯片 簡報 プレゼン プレゼンテーション スライド 発表資料 발표 프레젠테이션 슬라이드
press release: 新闻稿 プレスリリース 보도자료
price comparison: 比价 価格比較 가격비교
price monitoring, price drop: 降价 价格监控 値下げ 価格監視 가격하락 가격추적
price strategy, pricing strategy: 定价策略 価格戦略 가격전략
price, pricing: 价格 定价 料金 가격
primary key, index: 主键 主キー 기본키
print: 打印 列印 印刷 인쇄
print, printing: 打印机 印表機 プリンター 프린터
priority, prioritize: 优先级 優先順序 優先順位 優先度 우선순위
privacy: 隐私 プライバシー 個人情報 개인정보
privacy policy: 隐私政策 隱私權政策 プライバシーポリシー 개인정보처리방침
procedural: 程序化 手続き型 절차적
procedure: 步骤 程序步骤 手順 手順書 절차
process: 处理 進程 プロセス 프로세스 처리
product: 产品 商品 製品 プロダクト 제품 상품
product launch: 新品发布 製品発表 新製品 제품출시
product listing, product description: 商品描述 商品详情 商品説明 상품설명 상품상세
product manager, product management: 产品经理 プロダクトマネージャー 프로덕트매니저 제품관리
product owner: 产品负责人 プロダクトオーナー 프로덕트오너
product photo: 商品图 商品写真 상품사진
product requirements, prd: 产品需求 需求文档 要件定義 要求仕様 요구사항
production: 生产环境 本番 本番環境 운영환경 프로덕션
productivity: 效率 生产力 生産性 효율 생산성
professional: 专业 プロフェッショナル 전문
profile: 画像 档案 プロフィール 프로필
profit, margin: 利润 毛利 利益 利益率 이익 수익 마진
project manager, project management: 项目经理 项目管理 專案管理 プロジェクト管理 프로젝트관리
programming, program: 编程 程序 程式設計 プログラミング プログラム 프로그래밍 프로그램
progress: 进度 進捗 진행
project: 项目 專案 プロジェクト 프로젝트
project plan: 项目计划 プロジェクト計画 프로젝트계획
promotion, promote: 促销 推广 プロモーション 販促 홍보 프로모션
prompt: 提示词 プロンプト 프롬프트
prompt engineering: 提示工程 提示词工程 プロンプトエンジニアリング 프롬프트엔지니어링
prompt injection: 提示注入 プロンプトインジェクション 프롬프트인젝션
proof, theorem: 证明 定理 증명
proofread: 校对 校正 校閲 교정
proofreading: 校稿 文章校正 문장교정
property: 属性 物业 プロパティ 속성
proposal: 提案 方案 建议书 企画書 提案書 제안서
protein: 蛋白质 タンパク質 단백질
protocol: 协议 協定 プロトコル 프로토콜
prototype: 原型 プロトタイプ 프로토타입
provide: 给出 与える 주기
proxy: 代理服务器 プロキシ 프록시
psychology: 心理学 심리학
public relations, pr: 公关 広報 홍보실
publish: 发布 公開 投稿 게시 발행
publish article: 发文章 发布文章 記事公開 기사발행
publishing: 出版 出版社 출판
pull request, merge request: 合并请求 拉取请求 プルリクエスト プルリク 풀리퀘스트
purchase, procurement: 采购 購買 調達 구매 조달
push: 推送消息 プッシュ 푸시
push notification: 消息推送 プッシュ通知 푸시알림
python: 蟒蛇 パイソン 파이썬
quality: 质量 品質 품질
quality assurance, qa: 质量保证 质量管理 品质管理 品質保証 품질보증 품질관리
quality management system: 质量管理体系 品質マネジメントシステム 品質マネジメント 품질경영시스템
quantum: 量子 양자
quarter, quarterly: 季度 四半期 분기
query: 查询 クエリ 検索条件 쿼리 조회
question: 提问 質問 질문
queue: 队列 佇列 キュー 큐 대기열
quit smoking, smoking: 戒烟 抽烟 吸烟 戒菸 禁煙 喫煙 タバコ 금연 흡연 담배
quiz, exam: 考试 测验 題庫 試験 クイズ 시험 퀴즈
quota: 配额 クォータ 할당량
quote: 报价 見積書 견적서
race condition: 竞态条件 競合状態 경쟁상태
radio: 广播 收音机 ラジオ 라디오
rain, storm: 暴雨 暴风雨 大雨 嵐 폭우 폭풍
random: 随机 ランダム 乱数 무작위 랜덤
ranking, rank: 排名 排行 順位 ランキング 순위 랭킹
rate limit, rate limiting: 限流 速率限制 流量控制 レート制限 호출제한 속도제한
react: リアクト 리액트
read, reading: 阅读 讀取 読書 読み取り 읽기 독서
readability, legibility: 可读性 易读性 読みやすさ 가독성
reading list: 书单 読書リスト 독서목록
readme: 说明文件 リードミー 리드미
real estate: 房地产 房產 不動産 부동산
real estate listing: 房源 物件 매물
real-time: 实时 即時 リアルタイム 실시간
reasoning: 推理 推論 추론
recall, remember: 回忆 记住 思い出 覚え 기억
receipt: 收据 小票 領収書 レシート 영수증
recipe, food: 食谱 菜谱 レシピ 레시피 요리
recommend: 推荐 おすすめ 推奨 추천
recommendation system: 推荐系统 レコメンド 추천시스템
reconcile, reconciliation: 对账 照合 消込 대사 대조
record: 记录 기록
recording: 录音 录制 録画 녹음 녹화
recovery, restore: 恢复 还原 復旧 復元 リストア 복구 복원
recruiter: 猎头 招聘官 リクルーター 리크루터 채용담당자
redesign, refactor: 重构 リファクタリング 리팩터링 리팩토링
redirect: 重定向 リダイレクト 리디렉션
reduce, cut: 减少 降低 削減 減らす 減らし 줄이기 감소 절감
reference: 参考 参考资料 参考文献 リファレンス 참고 참고문헌 레퍼런스
reference management: 文献管理 参考文献管理 文献管理ソフト 문헌관리 서지관리
refund, return: 退款 退货 返金 返品 환불 반품
region: 地区 区域 地域 リージョン 지역
register, registration, sign up: 注册 報名 新規登録 会員登録 ユーザー登録 アカウント登録 등록 가입 회원가입
regression: 回归 회귀
regular expression, regex: 正则 正则表达式 正規表示式 正規表現 정규식 정규표현식
regulation: 法规 規制 규제
regulatory: 监管 規制当局 규제기관
reinforcement learning: 强化学习 강화학습
rejection, reject: 拒绝 却下 거절
relation, relationship: 关系 リレーション 관계
relational database: 关系型数据库 リレーショナルデータベース 관계형데이터베이스
release: 发版 发布版本 リリース 릴리스 출시
reliability: 可靠性 信頼性 신뢰성
religion, islamic, muslim: 宗教 伊斯兰 イスラム 이슬람 종교
reminder, remind: 提醒 リマインダー リマインド お知らせ 知らせ 리마인더 알려줘
remote: 远程 遠端 遠隔 リモート 원격
remote work: 远程办公 居家办公 リモートワーク 在宅勤務 재택근무 원격근무
rename: 重命名 改名 リネーム 이름변경
render, rendering: 渲染 彩現 レンダリング 렌더링
renewal: 续费 续约 更新手続き 갱신
rent, lease: 租房 租赁 房租 賃貸 家賃 임대 월세
replace: 替换 取代 置換 置き換え 교체 대체
reply: 回复邮件 返信メール 답장하기
report: 报告 レポート 報告書 보고서 리포트
report template: 报告模板 報告書テンプレート 보고서템플릿
repository: 仓库 代码仓库 リポジトリ 저장소
repurpose, adapt, rewrite: 改写 改編 書き直し 書き換え リライト 고쳐 고쳐줘 재작성
request: 请求 请願 リクエスト 依頼 요청
requirement: 需求 要求 要件 요구
requirements analysis: 需求分析 要件定義 요구사항 요구사항분석
rescue: 救援 救助 구조활동 구조대
research: 研究 调研 調査 リサーチ 연구 조사
research proposal, research plan, grant proposal: 研究计划 开题报告 研究計画 研究計画書 연구계획 연구계획서
reservation: 预订 訂位 予約 예매
resignation, turnover: 离职 辞职 退職届 이직률 퇴사
resilience: 韧性 レジリエンス 회복력
resize, crop: 缩放 裁剪 リサイズ 切り抜き 크기조정 자르기
resource: 资源 リソース 리소스
response: 响应 回复 レスポンス 返信 응답 답장
responsive: 响应式 レスポンシブ 반응형
rest api, rest: 接口设计
restaurant: 餐厅 レストラン 식당
result: 结果 결과
resume, cv: 简历 履歷 履歷表 履歴書 職務経歴書 이력서
retail, store: 零售 门店 店铺 小売 店舗 소매 매장
retention: 留任 保留 定着 リテンション 유지 리텐션
retrieval, rag: 检索增强 召回 検索拡張 검색증강
retrospective: 复盘 回顾 振り返り レトロスペクティブ 회고
retry: 重试 リトライ 再試行 재시도
reuse: 复用 再利用 재사용
revenue: 收入 营收 収益 売上高 매출 수익
reverse engineering: 逆向工程 逆向 リバースエンジニアリング 역공학 리버스엔지니어링
review: 评审 审查 複習 レビュー 審査 검토 리뷰
review, check code: 审核 見直し 검토하기
reward, bonus: 奖励 奖金 賞与 ボーナス 상여금
rewrite, humanize: 人間らしい文章 사람처럼
right, rights: 权利 권리
risk: 风险 リスク 위험 리스크
risk assessment: 风险评估 リスク評価 リスクアセスメント 위험평가
risk management: 风险管理 风控 リスク管理 위험관리
road, traffic: 交通 道路 交通渋滞 교통 도로
roadmap: 路线图 ロードマップ 로드맵
robot, bot: 机器人 ロボット ボット 로봇 봇
role: 角色 ロール 役割 역할
role-based access control, rbac: 角色权限 基于角色 ロールベース 역할기반
rollback: 回滚 回復版本 ロールバック 롤백
root cause: 根因 根本原因 원인분석 근본원인
route, routing: 路由 路线 経路 ルート ルーティング 라우팅 경로
ruby: ルビー 루비
rule: 规则 規則 ルール 규칙
run, execute: 运行 执行 実行 실행
runbook: 运维手册 操作手册 ランブック 運用手順書 런북
running, workout: 跑步 慢跑 ランニング ジョギング マラソン 달리기 러닝
runtime: 运行时 ランタイム 런타임
rust: ラスト 러스트
safety: 安全生产 安全対策 안전
salary, payroll: 工资 薪资 給与 給料 급여
sales: 销售 営業 セールス 売上 영업 판매
sales forecast: 销售预测 売上予測 매출예측
sales pitch: 销售话术 营业トーク 영업스크립트
sales report: 销售报表 売上レポート 판매보고서
salesforce: セールスフォース 세일즈포스
samsung: 三星 サムスン 삼성
sandbox: 沙箱 沙盒 サンドボックス 샌드박스
satellite: 卫星 위성
satisfaction: 满意度 満足度 만족도
save: 保存 儲存 保存する 저장하기
saving, savings: 储蓄 存钱 省钱 貯金 貯蓄 節約 저축 절약
savings rate: 储蓄率 貯蓄率 저축률
scaffold, boilerplate: 脚手架 样板 雛形 ひな形 ボイラープレート 스캐폴드 보일러플레이트
scale, scaling: 扩容 伸缩 擴展 スケーリング 増設 확장 스케일링
scan, scanner: 扫描 スキャン 스캔
scanned document: 扫描件 紙の書類 종이문서
scenario: 场景 情境 シナリオ 시나리오
schedule: 日程 排期 スケジュール 予定 일정
schedule post: 定时发布 予約投稿 예약게시 예약발행
schema: 模式 结构定义 スキーマ 스키마
scholar, scholarship: 奖学金 助学金 장학금
school, student: 学生 学校 학생 학교
science: 科学 과학
score, match result: 比分 比賽結果 試合結果 스코어 경기결과
scrape: 采集网页 网页抓取 ウェブスクレイピング 웹스크래핑 웹크롤링
screen: 屏幕 螢幕 スクリーン 스크린
screen reader: 屏幕阅读器 读屏 螢幕閱讀器 スクリーンリーダー 読み上げ 스크린리더 화면낭독
screen recording: 录屏 画面録画 화면녹화
screenplay: 剧本 脚本家 台本 대본 각본 시나리오작성
screenshot: 截图 スクリーンショット 스크린샷
script: 脚本 腳本 スクリプト 스크립트
script automation: 自动化脚本 自動化スクリプト 자동화스크립트
script writing: 写剧本 シナリオ作成 대본작성
scrum, sprint: 冲刺 迭代 スプリント スクラム 스프린트 스크럼
search: 搜索 搜尋 检索 검색
search engine: 搜索引擎 搜尋引擎 検索エンジン 검색엔진
season: 季节 시즌 계절
secret management, secrets: 密钥管理 シークレット 시크릿
secure: 加固 保護 보호
security: 安全 セキュリティ 보안
security audit: 安全审计 安全审查 セキュリティ監査 보안감사 보안점검
security vulnerability: 安全漏洞 セキュリティ脆弱性 보안취약점
self-improvement: 自我提升 自己啓発 자기계발
sell: 卖 出售 販売 売る 팔기 판매
semantic search, similarity search: 语义搜索 相似度搜索 意味検索 類似検索 의미검색 유사도검색
semantic, semantics: 语义 語意 意味 セマンティック 의미 시맨틱
send: 发送 寄出 傳送 送信 送って 送る 보내기 보내 전송 발송
sensor: 传感器 感測器 センサー 센서
seo, search engine: 搜索引擎 搜索引擎优化 検索エンジン 검색엔진
server: 服务器 伺服器 サーバー サーバ 서버
serverless: 无服务器 無伺服器 サーバーレス 서버리스
service: 服务 サービス 서비스
session: 会话 工作階段 セッション 세션
set, specify: 指定 設ける 지정
setup, set up: 搭建 初始化 セットアップ 設定方法 셋업 초기설정
severe weather: 恶劣天气 极端天气 悪天候 異常気象 악천후 기상특보
share, sharing: 分享 共享 共有 공유
shell script, bash: 命令脚本 シェルスクリプト シェル 셸스크립트 쉘스크립트 셸 쉘
shell, terminal, command: 命令行 终端 終端機 命令 コマンド ターミナル 명령어 터미널
shelter: 避难所 대피소
shipment, package tracking: 快递 包裹 宅配 荷物 택배
shipping, logistics: 物流 運輸 배송 물류
shopify: ショッピファイ 쇼피파이
shopping: 购物 網購 買い物 ショッピング 쇼핑 장보기
shopping cart, checkout: 购物车 结账 カート 장바구니
short video: 短视频 短影音 ショート動画 숏폼
show: 显示 見せる 보기
sidebar: 侧边栏 サイドバー 사이드바
sign, signature: 签名 署名 서명
signal: 信号 訊號 シグナル 신호 시그널
simplify, simple: 简化 简单 シンプル 간단 단순
simulation: 模拟 仿真 シミュレーション 시뮬레이션
singer, singing, vocal: 唱歌 歌手 声乐 歌唱 ボーカル 発声 노래 가수 보컬
single page: 单页 シングルページ 단일페이지
single sign-on, sso: 单点登录 單一登入 シングルサインオン 싱글사인온 통합로그인
site map, sitemap: 站点地图 網站地圖 サイトマップ 사이트맵
site structure, hierarchy: 网站结构 层级 階層 サイト構造 계층 사이트구조
size: 大小 尺寸 サイズ 크기
skeleton: 骨架 スケルトン 뼈대
sketch: 草图 素描 スケッチ 스케치
skill: 技能 スキル 스킬 기술
slack: スラック 슬랙
sleep: 睡眠 失眠 睡眠不足 수면 불면
slide deck: 演示稿 发表資料 スライド資料 발표자료
slide, slides: 幻灯片 投影片 スライド 슬라이드
slogan, tagline: 口号 标语 キャッチコピー スローガン 슬로건
smart contract: 智能合约 スマートコントラクト 스마트컨트랙트
smart home, home automation: 智能家居 智慧家庭 スマートホーム 家電 스마트홈
smartphone: 智能手机 スマホ スマートフォン 스마트폰 핸드폰
sms, text message: 短信 簡訊 ショートメール ショートメッセージ 문자 문자메시지
snapshot: 快照 スナップショット 스냅샷
social: 社交 社会 社会的 사회
social media: 社交媒体 社群媒體 ソーシャルメディア 소셜미디어
social media post: 朋友圈 社媒 소셜미디어게시물
socket, websocket: 套接字 ソケット 소켓
software: 软件 軟體 ソフトウェア 소프트웨어
solution: 解决方案 解決策 ソリューション 해결책 솔루션
solve, resolve: 解决 해결
song writing, lyrics: 歌词 写歌 作詞 작사 가사
song, track: 歌曲 歌单 听歌 曲 楽曲 プレイリスト 노래목록 곡
sort: 排序 並べ替え 정렬
sound, noise: 声音 噪音 音效 サウンド 騒音 소리 소음
source: 来源 信息源 情報源 出典 출처 소스
source code: 源代码 源码 原始碼 ソースコード 소스코드
source interview: 采访对象 取材 取材相手 취재
space: 空间 スペース 공간
spam: 垃圾邮件 迷惑メール スパム 스팸
speak, speaking: 口语 说话 話す スピーキング 말하기 회화
speaker, keynote: 演讲者 講者 登壇 연사
special education: 特殊教育 特教 個別化教育 特別支援教育 특수교육
specialist, expert: 专家 専門家 エキスパート 전문가
specification, spec: 规范 规格 仕様 명세 사양
speech recognition, speech to text: 语音识别 语音转文字 語音辨識 音声認識 音声入力 음성인식
speech, talk: 演讲 スピーチ 연설
speech, voice: 语音 音声認識 음성인식
speed: 速度 提速 速さ スピード 속도
spelling: 拼写 スペル 綴り 맞춤법 철자
spending: 花销 开销 消费 花费 花錢 出費 支払 소비 지출내역
split: 拆分 切分 分割 분할
sponsor: 赞助 スポンサー 스폰서 후원
sports: 体育 運動 スポーツ 스포츠
spotify: スポティファイ 스포티파이
spring: スプリング 스프링
sprint planning: 冲刺计划 迭代计划 スプリント計画 스프린트계획
sql: 结构化查询 構造化クエリ 에스큐엘
sql injection, xss: 跨站脚本 クロスサイトスクリプティング 크로스사이트
sql query optimization: 慢查询 查询优化 クエリ最適化 쿼리최적화
stack trace: 堆栈 调用栈 スタックトレース 스택트레이스
stage, staging: 预发布环境 ステージング 스테이징
stakeholder: 利益相关者 干系人 利害關係人 ステークホルダー 이해관계자
standard: 标准 規格 표준
standup, daily standup: 站会 晨会 朝会 デイリースクラム 데일리스크럼
start: 开始 始める 시작
startup: 创业 スタートアップ 스타트업 창업
state machine: 状态机 ステートマシン 상태머신
state management: 状态管理 상태관리
static site: 静态网站 静的サイト 정적사이트
statistics: 统计 통계
statistics test, hypothesis test: 统计检验 假设检验 仮説検定 가설검정
status: 状态 状況 ステータス 상태
step by step: 一步一步 分步 ステップバイステップ 단계별
stock: 这只股票 个股 銘柄 종목
stock price: 股价 株価 주가
stock, trading: 股票 炒股 株 株式 주식
stop: 停止 止める 중지
storage: 存储 儲存 ストレージ 保存 저장
store data: 存数据 格納 보관하기
store, shop: 商店 网店 店鋪 ショップ 상점 가게
stored procedure: 存储过程 ストアドプロシージャ 저장프로시저
story: 故事 ストーリー 物語 이야기
storybook: ストーリーブック 스토리북
strategy: 战略 전략
stream, streaming: 流式 串流 ストリーミング 스트리밍
stress: 压力 ストレス 스트레스
string: 字符串 字串 文字列 문자열
structure: 结构 構造 구조
structured output: 结构化输出 構造化出力 구조화출력
study: 学习计划 读书 勉強 공부
study notes: 学习笔记 讀書筆記 学習ノート 학습노트
style: 风格 樣式 スタイル 스타일
submit: 提交 提出 제출
subscription: 订阅 サブスク 購読 구독
subtitle: 字幕 자막
subway, metro: 地铁 捷運 地下鉄 지하철
suggestion, suggest: 建议 アドバイス 提言 제안하기 조언
summary, summarize: 总结 摘要 要約 まとめ 요약
supplier, vendor: 供应商 廠商 仕入先 ベンダー 공급업체 벤더
supply chain: 供应链 サプライチェーン 공급망
support: 支持 支援 サポート 지원
surgery: 手术 수술
survey: 问卷调查 アンケート調査 설문조사
survey, questionnaire: 问卷 調查 アンケート 설문
sustainability, esg: 可持续 永續 サステナビリティ 持続可能 지속가능
swift: スウィフト 스위프트
switch: 切换 切り替え 전환
swot, strategic analysis: 优劣势分析 強み弱み 강점약점
symptom: 症状 증상
symptoms check: 症状自查 症状チェック 증상확인
synchronize, sync: 同步 同期 동기화
syntax: 语法错误 構文 シンタックス 구문
synthesis, synthesize: 综合 合成 統合分析 종합 합성
system: 系统 システム 시스템
system design: 系统设计 システム設計 시스템설계
table: 数据表 テーブル 表 테이블 표
tag: 标签 タグ 태그
talk: 聊聊 話し合い 이야기하기
taobao, alibaba: 淘宝 阿里巴巴 アリババ
target: 目标客户 ターゲット 타깃 타겟
tariff, customs: 关税 海关 税関 관세 통관
task: 任务 タスク 작업
task management, task manager: 任务管理 タスク管理 작업관리 할일관리
tax: 税务 税 税金 세금 세무
tax return, tax filing: 报税 纳税申报 確定申告 세금신고 연말정산
teach: 教 教える 教えて 가르치기
teacher: 老师 教师 先生 교사 선생님
team: 团队 チーム 팀
team building: 团建 チームビルディング 팀빌딩
teams: チームズ 팀즈
technical debt: 技术债 技术债务 技術債 技術的負債 기술부채
technical writing, technical documentation: 技术写作 テクニカルライティング 기술문서
technology, tech: 技术 科技 テクノロジー 기술동향
telegram: 电报 テレグラム 텔레그램
television, tv: 电视 电视机 テレビ 텔레비전 티비
template: 模板 範本 テンプレート 템플릿
tenant, multi-tenant: 多租户 租户 マルチテナント 멀티테넌트
terms of service: 服务条款 用户协议 利用規約 이용약관 약관
terms, clause: 条款 条項 조항
terraform: テラフォーム 테라폼
tesla: 特斯拉 テスラ 테슬라
test automation: 自动化测试 テスト自動化 自動テスト 테스트자동화 자동화테스트
test case: 测试用例 測試案例 テストケース 테스트케이스
test coverage: 测试覆盖率 テストカバレッジ 테스트커버리지
test data: 测试数据 テストデータ 테스트데이터
test driven development, tdd: 测试驱动 测试驱动开发 テスト駆動 テスト駆動開発 테스트주도
test, testing: 测试 テスト 테스트
text: 文本 文字 テキスト 텍스트
text to speech, tts, voiceover: 语音合成 文字转语音 配音 音声合成 読み上げ音声 ナレーション 음성합성 더빙 나레이션
thank you: 感谢信 お礼 感謝 감사편지
theater, drama: 戏剧 话剧 演劇 연극
theme: 主题 テーマ 테마
thinking: 思考 思维 사고
thread, concurrency: 线程 スレッド 동시성
threat model, threat modeling: 威胁建模 威脅 脅威モデリング 脅威 위협모델링 위협
three-dimensional, 3d: 三维 立体 三次元 입체 삼차원
thumbnail, cover: 缩略图 封面 縮圖 サムネイル 表紙 썸네일 표지
ticket: 工单 チケット 티켓
ticket, event ticket: 门票 入場券 입장권
tiktok, douyin: 抖音 ティックトック 틱톡
time: 时间 시간
time management: 时间管理 시간관리
time series: 时间序列 時系列 시계열
time tracking, timesheet: 工时 考勤记录 勤怠管理 工数 근무시간
timeline: 时间线 時間軸 タイムライン 年表 타임라인
timeout: 超时 逾時 タイムアウト 타임아웃
timezone: 时区 タイムゾーン 시간대
title: 标题 タイトル 제목
to-do list, todo, task list: 待办 待办事项 やること やることリスト 할일 할일목록
today: 今天 今日 오늘
token: 令牌 代币 トークン 토큰
tone, voice: 语气 语调 口調 トーン 말투 어조
tool: 工具 ツール 도구
topic: 选题 话题 トピック 주제 화제
tour, tourism: 旅游攻略 景点 觀光 관광
toxicity: 毒性 독성
tracing, trace: 链路追踪 追踪 トレース トレーシング 추적 트레이싱
track, tracking: 跟踪 追跡 トラッキング 트래킹
trade: 交易 贸易 取引 거래 무역
trademark: 商标 상표
trader, trading: 量化 量化交易 トレード 取引戦略 트레이딩 매매
traffic: 流量 网站流量 アクセス数 트래픽
train, railway: 火车 高铁 铁路 列车 鉄道 電車 新幹線 기차 철도
training, fine-tuning: 模型训练 モデル学習 모델학습
transaction: 事务 交易记录 トランザクション 트랜잭션
transcribe, transcription: 转录 转写 文字起こし 書き起こし 전사 받아쓰기
transcript: 逐字稿 文字稿 トランスクリプト 녹취록 전체대화
transform, transformation: 转化 变换 変形 변환하기
translate, translation: 翻译 번역
translation subtitle: 字幕翻译 자막번역
transport, public transit: 公交 公共交通 バス 대중교통 버스
travel plan, trip planning: 旅行计划 旅游规划 旅行プラン 여행계획
travel, trip: 旅行 旅游 出張 여행
trend: 趋势 趨勢 トレンド 트렌드
trigger: 触发 トリガー 트리거
trim, cut video: 裁切 カット 컷편집
troubleshoot: 排查 故障排除 トラブルシューティング 문제해결
tutor, tutoring: 家教 辅导 家庭教師 과외
twitter, x, tweet: 推特 ツイッター ツイート 트위터 트윗
two-factor authentication, mfa: 双因素 两步验证 二要素認証 二段階認証 다중인증 이중인증
type: 类型 型 タイプ 타입
type hint, type annotation: 类型注解 类型提示 型ヒント 型注釈 타입힌트
type safety, type checking: 类型安全 类型检查 型安全 型チェック 타입안전 타입체크
typescript: タイプスクリプト 타입스크립트
typography: 字体排印 タイポグラフィ 타이포그래피
ui design, user interface design: 界面设计 介面設計 画面設計 화면설계 인터페이스디자인
ui, user interface: 用户界面 界面 使用者介面 画面 화면
understand: 理解 看懂 了解 이해
uninstall: 卸载 解除安裝 アンインストール 제거하기
unit test: 单元测试 単体テスト ユニットテスト 단위테스트
unity: ユニティ 유니티
university, college: 大学 高校 대학 대학교
unlock: 解锁 解除 잠금해제
update: 更新 アップデート 업데이트
upgrade: 升级 アップグレード 업그레이드
upload: 上传 アップロード 업로드
usability, user experience, ux: 用户体验 易用性 使用者體驗 ユーザビリティ 使い勝手 사용성 사용자경험
usage: 使用情况 用量 使用量 利用状況 사용량
user: 用户 使用者 ユーザー 利用者 사용자
user research, user interview: 用户研究 用户访谈 使用者研究 ユーザー調査 ユーザーインタビュー 사용자조사 사용자인터뷰
user story: 用户故事 ユーザーストーリー 유저스토리
utility: 实用工具 ユーティリティ 유틸리티
vaccine: 疫苗 ワクチン 백신
validate input: 输入校验 入力検証 입력검증
validate, verify: 验证 校验 検証 검증
variable: 变量 變數 변수
vat, invoice tax: 增值税 消費税 부가세 부가가치세
vector database: 向量数据库 向量資料庫 ベクトルデータベース 벡터데이터베이스 벡터디비
vegetable, fruit: 蔬菜 水果 野菜 果物 채소 과일
vehicle, car: 汽车 自動車 車 자동차
version: 版本 バージョン 버전
version control, git: 版本控制 バージョン管理 버전관리
versioning, version management: 版本管理 バージョン管理 버전관리
veterinary, animal: 兽医 动物 동물 수의사
video: 视频 影片 動画 ビデオ 영상 비디오 동영상
video editing, edit video: 视频剪辑 剪辑 剪成 影片剪輯 動画編集 영상편집 동영상편집
video generation: 视频生成 文生视频 動画生成 영상생성
view, browse: 浏览网页 閲覧する 둘러보기
viral: 爆款 病毒式 バズる 바이럴
virtual machine, virtualization: 虚拟机 虚拟化 仮想マシン 仮想化 가상머신 가상화
virtual reality, vr: 虚拟现实 バーチャルリアリティ 가상현실
visualization, visualize: 可视化 視覺化 시각화
vocabulary, word: 单词 词汇 单字 単語 語彙 단어 어휘
voice assistant: 语音助手 音声アシスタント 음성비서
voice memo, voice note: 语音备忘录 语音笔记 ボイスメモ 음성메모
volume: 音量 成交量 ボリューム 볼륨
volunteer: 志愿者 義工 ボランティア 자원봉사
vpn: 虚拟专用网 仮想プライベート 가상사설망
vulnerability: 漏洞 弱點 脆弱性 취약점
wait list: 候补 キャンセル待ち 대기자명단
wait, sleep: 等待 待機 대기
wallet: 钱包 ウォレット 지갑
wallpaper: 壁纸 桌布 배경화면
warehouse: 数据仓库 データウェアハウス 데이터웨어하우스
warning: 预警 警示 警報 경보 주의보
warranty: 保修 保固 保証 보증
waste, trash: 垃圾分类 ゴミ 쓰레기
watch, monitor changes: 盯着 見張る 감시
watch, wearable: 手表 可穿戴 腕時計 ウェアラブル 시계착용 웨어러블
water: 用水 喝水 水分 물마시기
watermark: 水印 浮水印 透かし 워터마크
wealth, wealth management: 财富 财富管理 資産形成 富 자산관리
weather: 天气 날씨
weather forecast, meteorology: 天气预报 天気予報 気象 일기예보 기상
web component: 前端组件 フロントエンド部品 프론트엔드컴포넌트
web development: 网页开发 网站开发 ウェブ開発 웹개발
web page: 网页 ウェブページ 웹페이지
web performance, page speed: 网页性能 加载速度 表示速度 페이지속도
web scraping: 网络爬虫 网页爬虫 ウェブスクレイピング 웹스크래핑
web, website: 网站 ウェブサイト サイト 웹사이트 웹
webhook: 网络钩子 ウェブフック 웹훅
website design: 网页设计 ウェブデザイン サイト制作 웹디자인
wechat: 微信 微信公众号 公众号
wedding, marriage: 婚礼 结婚 結婚式 결혼 결혼식
weekly report: 周报 주간보고
weekly, week: 每周 本周 週次 주간 매주
weibo: 微博 ウェイボー
weight loss: 减重 体重 減量 体重管理 체중
white paper: 白皮书 ホワイトペーパー 백서
whiteboard: 白板 ホワイトボード 화이트보드
widget: 小部件 小组件 ウィジェット 위젯
wifi, wireless: 无线 ワイファイ 와이파이 무선
will, inheritance, estate: 遗嘱 遗产 继承 遺言 相続 유언 상속
window: 窗口 視窗 ウィンドウ 창
windows: 微软系统 ウィンドウズ 윈도우 윈도
wine, alcohol: 葡萄酒 酒 ワイン お酒 와인 술
wisdom, quote: 名言 智慧 格言 명언 지혜
word document, docx: ワード文書 워드문서
word, docx: 文字处理 ワード 워드
wordpress: ワードプレス 워드프레스
work: 工作 仕事 업무
worker: 工人 工作者 作業員 ワーカー 노동자
workflow automation: 工作流自动化 ワークフロー自動化 워크플로자동화
workload: 工作量 工作负载 作業負荷 업무량
workshop: 研讨会 工作坊 ワークショップ 워크숍
worldbuilding: 世界观 세계관
write, draft: 写一 写个 写份 写封 写篇 我写 撰稿 書いて 書く 書き 書きたい 적어 써줘 쓰기
write, writing: 写作 撰写 執筆 書く 문서작성 글쓰기
xiaohongshu: 小红书
xml: 标记语言
yaml: 配置文件 設定ファイル 설정파일
year: 年度 今年 年間 연간
yoga: 瑜伽 ヨガ 요가
youtube: 油管 ユーチューブ 유튜브
zero trust: 零信任 ゼロトラスト 제로트러스트
zhihu: 知乎
zip, archive file: 压缩包 壓縮檔 圧縮ファイル 압축파일
zoom: ズーム 줌
"""
"""Each line is a concept: English words, alternatives after commas, a colon, and the terms that mean it.

A Chinese term is in either script, and a Japanese one with or without long marks: both are folded when looked up.
"""

VARIANTS = """
両两 並并 仏佛 仮假 伝传 佈布 佔占 併并 來来 価价 侶侣 係系 俠侠 倂并 倆俩 倉仓 個个 倫伦 偉伟 側侧 偵侦 偽伪 傑杰
傘伞 備备 傳传 傷伤 僅仅 僑侨 僕仆 僱雇 價价 儀仪 億亿 償偿 優优 儲储 児儿 兒儿 內内 兩两 円圆 冊册 凍冻 処处 凱凯
別别 刪删 剛刚 剝剥 剣剑 剤剂 剰剩 創创 劃划 劇剧 劑剂 労劳 効效 勅敕 動动 務务 勝胜 勞劳 勢势 勧劝 勵励 勸劝 匯汇
區区 協协 単单 卻却 厲厉 厳严 參参 収收 叢丛 員员 問问 啓启 啟启 喚唤 單单 営营 嗎吗 嘆叹 嘗尝 噴喷 噸吨 嚴严 囑嘱
団团 囲围 図图 國国 圍围 園园 圓圆 圖图 團团 圧压 執执 報报 場场 塁垒 塊块 塗涂 塢坞 塩盐 塵尘 墊垫 増增 壇坛 壌壤
壓压 壞坏 壯壮 壱壹 売卖 壺壶 壽寿 変变 夠够 夢梦 夾夹 奧奥 奨奖 奪夺 奬奖 妝妆 姉姐 娛娱 婦妇 媽妈 嬰婴 孃娘 孫孙
學学 実实 宮宫 寢寝 實实 寧宁 審审 寫写 寬宽 寶宝 対对 専专 將将 專专 尋寻 對对 導导 屆届 屍尸 屜屉 層层 屬属 岡冈
島岛 崗岗 嶺岭 巣巢 巻卷 帥帅 師师 帯带 帰归 帳账 帶带 幣币 幫帮 幹干 幾几 庁厅 広广 庫库 廂厢 廃废 廠厂 廢废 廣广
廳厅 廻回 弐贰 弔吊 強强 弾弹 彈弹 彌弥 彙汇 従从 從从 復复 徳德 徴征 徵征 徹彻 応应 悩恼 悪恶 悶闷 惡恶 惱恼 態态
慘惨 慣惯 慮虑 慶庆 憂忧 憐怜 憑凭 憤愤 憲宪 憶忆 懇恳 應应 懲惩 懶懒 懷怀 懸悬 戀恋 戦战 戯戏 戰战 戲戏 戶户 戸户
抜拔 択择 拋抛 拝拜 拠据 拡扩 挙举 挾挟 挿插 捜搜 捨舍 捲卷 掃扫 掙挣 掛挂 採采 掲揭 揀拣 揚扬 換换 揮挥 揺摇 損损
搖摇 搶抢 摂摄 摯挚 撃击 撈捞 撐撑 撥拨 撲扑 撹搅 擇择 擊击 擋挡 擔担 據据 擠挤 擬拟 擴扩 擺摆 擾扰 攔拦 攜携 攝摄
攤摊 攪搅 攬揽 敗败 敵敌 數数 斃毙 斉齐 斎斋 斷断 於于 昇升 時时 晝昼 暁晓 暢畅 暦历 暫暂 曆历 曇昙 曉晓 書书 會会
東东 枴拐 栄荣 桜樱 桟栈 條条 棄弃 棧栈 検检 楊杨 業业 極极 楽乐 榮荣 構构 槍枪 様样 樂乐 標标 樣样 権权 樹树 橋桥
機机 檔档 檢检 檯台 檸柠 櫃柜 櫻樱 欄栏 權权 歎叹 歐欧 歓欢 歡欢 歩步 歯齿 歲岁 歳岁 歴历 歷历 歸归 殘残 殺杀 殻壳
殼壳 毀毁 毆殴 毎每 気气 氣气 氫氢 汙污 決决 沖冲 沢泽 況况 洩泄 浄净 涙泪 淚泪 淨净 淺浅 渇渴 済济 渋涩 渓溪 減减
渦涡 測测 湊凑 湯汤 満满 準准 溝沟 溫温 滄沧 滅灭 滝泷 滬沪 滿满 漁渔 漢汉 漬渍 漲涨 潔洁 潤润 潰溃 澀涩 澤泽 濃浓
濕湿 濟济 濫滥 濱滨 濾滤 瀉泻 瀏浏 瀕濒 瀧泷 灣湾 災灾 為为 烏乌 焔焰 無无 焼烧 煉炼 煙烟 熱热 燈灯 燒烧 營营 爐炉
爭争 爺爷 牆墙 牽牵 犠牺 犧牺 狀状 狹狭 猟猎 猶犹 獄狱 獅狮 獎奖 獣兽 獨独 獲获 獵猎 獸兽 玆兹 現现 瑣琐 瑪玛 環环
產产 産产 畝亩 畫画 異异 畳叠 當当 疊叠 痠酸 瘋疯 療疗 癒愈 癡痴 癥症 癱瘫 発发 發发 皚皑 皺皱 盜盗 盞盏 盡尽 監监
盤盘 盧卢 県县 眾众 睏困 瞞瞒 瞭了 矚瞩 矯矫 砕碎 硯砚 碁棋 確确 碼码 磚砖 礎础 礙碍 祕秘 祿禄 禍祸 禦御 禪禅 禮礼
稅税 種种 稱称 稲稻 穀谷 穂穗 積积 穏稳 穩稳 穫获 窓窗 窩窝 窮穷 竄窜 竊窃 竜龙 競竞 筆笔 筍笋 節节 範范 築筑 簡简
簽签 簾帘 籃篮 籌筹 籠笼 籤签 籲吁 粋粹 粛肃 粧妆 粵粤 糧粮 糰团 糸丝 糾纠 紀纪 約约 紅红 紋纹 納纳 紐纽 純纯 紙纸
級级 紛纷 紡纺 細细 紳绅 紹绍 終终 絃弦 組组 経经 結结 絕绝 絞绞 絡络 給给 統统 絵绘 絶绝 絹绢 經经 継继 続续 綜综
綠绿 綫线 維维 綱纲 網网 綿绵 緊紧 総总 緑绿 緒绪 線线 緝缉 締缔 編编 緩缓 緯纬 練练 緻致 縁缘 縝缜 縣县 縦纵 縫缝
縮缩 縱纵 總总 績绩 繃绷 繊纤 織织 繞绕 繪绘 繭茧 繰缲 繳缴 繼继 續续 纏缠 纖纤 罈坛 罰罚 罵骂 罷罢 羅罗 羨羡 義义
習习 翹翘 聖圣 聞闻 聡聪 聯联 聰聪 聲声 聳耸 聴听 職职 聽听 聾聋 肅肃 脅胁 脈脉 脫脱 脳脑 腦脑 膚肤 膠胶 臉脸 臓脏
臨临 臺台 舉举 舊旧 舎舍 舖铺 艙舱 艦舰 艶艳 芸艺 荘庄 莊庄 華华 萬万 葉叶 蒼苍 蓋盖 蔔卜 蔣蒋 蔵藏 蕭萧 薦荐 薫薰
薬药 藉借 藍蓝 藝艺 藥药 蘇苏 蘋苹 蘭兰 蘿萝 處处 虛虚 虜虏 號号 虧亏 蛍萤 蝦虾 蝸蜗 螢萤 蟲虫 蠟蜡 蠶蚕 衆众 衊蔑
術术 衛卫 衝冲 裏里 補补 裝装 裡里 製制 複复 褲裤 襪袜 襯衬 襲袭 覆复 覇霸 見见 規规 視视 覚觉 覧览 親亲 観观 覺觉
覽览 觀观 觸触 訂订 訃讣 計计 訊讯 討讨 訓训 託托 記记 訛讹 訟讼 訪访 設设 許许 訳译 訴诉 診诊 註注 証证 詐诈 評评
詞词 詠咏 詢询 試试 詩诗 詭诡 話话 該该 詳详 誇夸 誌志 認认 誕诞 誘诱 語语 誠诚 誤误 說说 説说 読读 誰谁 課课 誼谊
調调 談谈 請请 論论 諜谍 諧谐 諭谕 諮咨 諷讽 諾诺 謀谋 謊谎 謎谜 謙谦 講讲 謝谢 謠谣 謡谣 謹谨 證证 譏讥 識识 譜谱
譯译 議议 譲让 譴谴 護护 譽誉 讀读 變变 讓让 豊丰 豐丰 貓猫 貝贝 負负 財财 貢贡 貨货 販贩 貫贯 責责 貯贮 貴贵 買买
貸贷 費费 貼贴 貿贸 賀贺 賃赁 賄贿 資资 賊贼 賓宾 賛赞 賜赐 賞赏 賠赔 賢贤 賣卖 賦赋 質质 賬账 賭赌 賴赖 購购 贅赘
贈赠 贊赞 贏赢 贓赃 趕赶 趙赵 跡迹 踐践 蹟迹 蹤踪 躉趸 躍跃 軀躯 車车 軌轨 軍军 軒轩 軟软 転转 軸轴 軽轻 較较 載载
輔辅 輕轻 輝辉 輩辈 輪轮 輯辑 輸输 轄辖 轉转 轟轰 辦办 辭辞 農农 辺边 迴回 逓递 連连 週周 進进 遅迟 遊游 運运 過过
達达 違违 遜逊 遞递 遠远 適适 遲迟 遷迁 選选 遺遗 邁迈 還还 邊边 邏逻 郵邮 郷乡 鄉乡 鄧邓 鄭郑 鄰邻 酔醉 醜丑 醤酱
醫医 醬酱 醸酿 釀酿 釈释 釋释 針针 釣钓 鈔钞 鈕钮 鈴铃 鉄铁 鉅巨 鉛铅 鉢钵 鉤钩 銀银 銃铳 銅铜 銘铭 銭钱 銳锐 銷销
鋒锋 鋪铺 鋭锐 鋳铸 鋸锯 鋼钢 錄录 錐锥 錠锭 錢钱 錦锦 錬炼 錯错 録录 錶表 鍊链 鍋锅 鍛锻 鍵键 鍾钟 鎂镁 鎖锁 鎧铠
鎮镇 鏈链 鏟铲 鏡镜 鏽锈 鐘钟 鐵铁 鑑鉴 鑲镶 鑽钻 鑿凿 長长 門门 閃闪 閉闭 開开 閑闲 間间 閘闸 関关 閣阁 閥阀 閱阅
閲阅 閻阎 闆板 闇暗 闊阔 闖闯 闘斗 關关 闡阐 闢辟 陝陕 陣阵 陥陷 陰阴 陳陈 陸陆 険险 陽阳 隊队 階阶 隕陨 際际 隠隐
隣邻 隨随 險险 隱隐 隷隶 隸隶 雑杂 雖虽 雙双 雛雏 雜杂 雞鸡 離离 難难 雲云 電电 霊灵 霧雾 霽霁 靈灵 靑青 靜静 韌韧
韓韩 韻韵 響响 頁页 頂顶 項项 順顺 須须 頌颂 預预 頑顽 頒颁 頓顿 頗颇 領领 頭头 頰颊 頸颈 頹颓 頻频 頼赖 題题 額额
顏颜 顔颜 願愿 顛颠 類类 顧顾 顫颤 顯显 風风 颱台 飄飘 飛飞 飢饥 飪饪 飯饭 飲饮 飼饲 飽饱 飾饰 餃饺 餅饼 養养 餌饵
餒馁 餓饿 餘余 館馆 餵喂 饋馈 饒饶 駄驮 駆驱 駐驻 駒驹 駕驾 駛驶 駝驼 駿骏 騎骑 騒骚 験验 騙骗 騰腾 騷骚 驅驱 驕骄
驗验 驚惊 驛驿 驟骤 驢驴 髄髓 髒脏 體体 髙高 髪发 髮发 鬆松 鬍胡 鬚须 鬥斗 鬧闹 魚鱼 魯鲁 鮑鲍 鮮鲜 鯊鲨 鯨鲸 鱷鳄
鳥鸟 鳴鸣 鴉鸦 鴨鸭 鵝鹅 鵬鹏 鶏鸡 鷹鹰 鸚鹦 鹽盐 麗丽 麥麦 麩麸 麵面 麺面 麼么 黃黄 黌黉 黒黑 黙默 點点 黨党 黴霉
鼕冬 鼴鼹 齊齐 齒齿 齡龄 齢龄 龍龙
"""
"""Traditional and Japanese characters, each followed by the simplified one that replaces it."""
